// interlock torture: workers that take locks of your store in every way, some of them killed and stopped, and a
// check of all that they were told.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>

#include "command.hpp"
#include "interlock/claim.hpp"
#include "terminal.hpp"
#include "torture/director.hpp"
#include "torture/report.hpp"
#include "torture/worker.hpp"

namespace cli {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A store that is there already. Nothing can go wrong with its server here, but for what goes wrong anyway.
class GivenStore final : public torture::Topology {
 public:
  GivenStore(std::string url, const interlock::Traits& traits) : url_(std::move(url)) {
    promise_.shortest_ttl = 1s;
    promise_.across_processes = traits.across_processes;
    promise_.queues = traits.queues;
    promise_.detaches = traits.detaches;
    promise_.timeout = false;
    promise_.long_ttl = 10s;
  }
  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] torture::Promise promise() const override { return promise_; }
  [[nodiscard]] std::vector<torture::Fault> faults() override { return {}; }

 private:
  std::string url_;
  torture::Promise promise_;
};

struct Wanted {
  torture::RoundPlan plan{};
  std::string keep{};
  bool json = false;
};

fs::path fresh_directory() {
  auto name = (fs::temp_directory_path() / "interlock-torture-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Failure(kSystem, "no directory for the history can be made in " +
                               fs::temp_directory_path().string());
  return name;
}

int run_round(const Wanted& wanted, const Common& common, const Arguments& arguments) {
  auto plan = wanted.plan;
  const auto client = open_any_store(common);
  const auto& traits = client.traits();
  plan.topology = traits.name;
  plan.given = true;
  plan.prefix = "interlock-torture-" + interlock::Owner::random().brief() + "-";
  // A store that does not answer is told here, and not by each worker.
  (void)client.inspect({.prefix = plan.prefix});
  plan.self = {"interlock", "torture"};
  plan.command = fs::read_symlink("/proc/self/exe");
  plan.directory = wanted.keep.empty() ? fresh_directory() : fs::path(wanted.keep);
  if (!wanted.keep.empty()) fs::create_directories(plan.directory);
  if (!wanted.json) {
    std::cout << "torture at " << printable(traits.where) << ": " << plan.processes
              << " processes of " << plan.hands << " threads, seed " << plan.seed << '\n'
              << set_by(arguments) << "Names: " << plan.prefix << "…\n"
              << std::flush;
  }
  GivenStore store(store_url(common), traits);
  torture::hold_round(store, plan);
  const auto round = torture::judge(plan.directory);
  const bool failed = round.violations() > 0;
  if (wanted.json) {
    std::cout << torture::to_json({round}).dump(2) << '\n';
  } else {
    torture::print(std::cout, {round});
  }
  if (wanted.keep.empty() && !failed) fs::remove_all(plan.directory);
  return failed ? kFailed : kOk;
}

}  // namespace

int torture_store(const Arguments& arguments) {
  // In the processes that this command starts.
  const auto& words = arguments.before;
  if (!words.empty() && words.front() == "worker")
    return torture::run_worker([](const std::string& url) { return interlock::connect(url); });
  if (!words.empty() && words.front() == "touch")
    return torture::run_touch({words.begin() + 1, words.end()});

  Parser parser(
      "torture [OPTIONS]",
      "Takes locks of your store in every way that there is, by processes of which some are\n"
      "killed and some are stopped, and checks all that they were told: no two hold what only\n"
      "one may, fences rise, every wait ends, and more. Exit status 1 if a check failed.",
      "  interlock torture --url redis://localhost\n"
      "  interlock torture --duration 5m --seed 7 --keep history");
  Wanted wanted;
  wanted.plan.seed = std::random_device()() % 100'000;
  add_work_time(parser, "How long (default: 15s)", wanted.plan.lasts);
  add_seed(parser, "What is left to chance comes from it (default: any)",
           [&wanted](auto value) { wanted.plan.seed = value; });
  parser
      .add_option("--processes", wanted.plan.processes, "Each with its own connection (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  parser.add_option("--threads", wanted.plan.hands, "Of each process (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  parser
      .add_option("--keep", wanted.keep, "Keep the history here (default: only if a check failed)")
      ->type_name("DIR");
  parser.add_json(wanted.json);
  parser.read(arguments);
  return run_round(wanted, parser.common, arguments);
}

}  // namespace cli
