// simulation [--seeds N] [--seed FIRST] [--trouble KIND] [--trace] [--all]: runs seeds, and shows the first violation.
#include <CLI/CLI.hpp>
#include <ctime>
#include <iostream>
#include <map>

#include "run.hpp"

namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void show(const simulation::Options& options, const simulation::Result& found) {
  std::cout << "seed " << options.seed << ": " << found.check << ": " << found.what << "\n"
            << "again: build/bin/lab/simulation --seed " << options.seed << " --seeds 1 --trace\n";
  const auto shorter = simulation::shorten(options, found.check);
  const auto again = simulation::run(shorter);
  std::cout << "with " << again.faults - shorter.without_faults.size() << " of " << again.faults
            << " faults and " << again.workers - shorter.without_workers.size() << " of "
            << again.workers << " workers:\n";
  for (const auto& line : again.trace) std::cout << line << "\n";
}

int simulate(int argc, char** argv) {
  CLI::App app{"Redlock in virtual time: one seed is the whole run."};
  std::uint64_t seeds = 10000;
  std::uint64_t first = 1;
  bool traces = false;
  auto trouble = simulation::Trouble::any;
  const std::map<std::string, simulation::Trouble> troubles{
      {"any", simulation::Trouble::any},
      {"all", simulation::Trouble::all},
      {"clocks", simulation::Trouble::clocks},
      {"losses", simulation::Trouble::losses}};
  bool all = false;
  app.add_option("--seeds", seeds, "how many runs")->capture_default_str();
  app.add_option("--seed", first, "the first one")->capture_default_str();
  app.add_option("--trouble", trouble, "what mostly goes wrong: any, all, clocks, losses")
      ->transform(CLI::CheckedTransformer(troubles));
  app.add_flag("--trace", traces, "print all that happens");
  app.add_flag("--all", all, "go on after a violation, and count them");
  CLI11_PARSE(app, argc, argv);

  std::uint64_t events = 0, grants = 0, faults = 0, done = 0;
  std::map<std::string, std::uint64_t> violations;
  const auto began = processor_seconds();
  for (auto seed = first; seed < first + seeds; ++seed) {
    const simulation::Options options{.seed = seed, .trouble = trouble, .traces = traces};
    const auto result = simulation::run(options);
    ++done;
    events += result.events;
    grants += result.grants;
    faults += result.faults;
    if (traces) {
      for (const auto& line : result.trace) std::cout << line << "\n";
    }
    if (result.check.empty()) continue;
    ++violations[result.check];
    if (all) {
      std::cout << "seed " << seed << ": " << result.check << ": " << result.what << "\n";
      continue;
    }
    if (!traces) show(options, result);
    break;
  }
  const auto took = processor_seconds() - began;
  std::cout << done << " seeds from " << first << " on in " << took << " s of a processor, "
            << static_cast<std::uint64_t>(static_cast<double>(done) * 60 / took)
            << " a minute: " << events << " events, " << faults << " faults, " << grants
            << " grants, " << (violations.empty() ? "no violation" : "violations:") << "\n";
  for (const auto& [check, count] : violations) std::cout << "  " << check << ": " << count << "\n";
  return violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return simulate(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "simulation: " << error.what() << '\n';
    return 2;
  }
}
