// torture: tries hard to break the locks of every store, and says with a seed how to try it again.
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "director.hpp"
#include "known.hpp"
#include "report.hpp"
#include "topology.hpp"
#include "worker.hpp"

namespace {

using namespace std::chrono_literals;
using torture::RoundResult;
namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> stores{};
  std::uint64_t seed = 1;
  double minutes = 0;
  double seconds = 15;
  int processes = 3;
  int hands = 3;
  int repeats = 0;
  std::vector<std::string> until{};
  std::string keep = "torture";
  std::string known{};
  std::string judge{};
  bool json = false;
};

// Rounds that failed are repeated, and that has to end.
constexpr interlock::Duration kMostForRepeats = 2min;

interlock::Duration to_duration(double seconds) {
  return std::chrono::duration_cast<interlock::Duration>(std::chrono::duration<double>(seconds));
}

class Session {
 public:
  explicit Session(Options options)
      : options_(std::move(options)), known_(torture::read_known(options_.known)) {}

  int run() {
    if (!options_.judge.empty()) {
      rounds_.push_back(judge(options_.judge));
      return tell();
    }
    const auto until = interlock::BootClock::now() + to_duration(options_.minutes * 60);
    auto seed = options_.seed;
    do {
      for (const auto& kind : torture::topologies()) {
        if (!is_wanted(kind.name)) continue;
        if (seed > options_.seed && interlock::BootClock::now() > until) break;
        rounds_.push_back(hold(kind, seed, ""));
        auto& round = rounds_.back();
        torture::print_progress(std::cerr, round);
        if (round.violations() == 0) {
          fs::remove_all(round.directory);
        } else if (!torture::only_known(round, known_)) {
          failed_ = true;
          repeat(kind, round, until + kMostForRepeats);
          if (found()) break;
        }
      }
      ++seed;
    } while (interlock::BootClock::now() < until && !found());
    return tell();
  }

 private:
  int tell() {
    if (options_.json) {
      std::cout << to_json(rounds_).dump(2) << '\n';
    } else {
      torture::print(std::cout, rounds_);
    }
    for (const auto& what : left_out_)
      std::cerr << "Left out, as this machine does not permit it: " << what << '\n';
    return failed_ ? 1 : 0;
  }

  static RoundResult judge(const fs::path& directory) {
    return torture::judge(directory,
                          fs::read_symlink("/proc/self/exe").parent_path() / "porcupine");
  }

  [[nodiscard]] bool is_wanted(const std::string& name) const {
    return options_.stores.empty() ||
           std::find(options_.stores.begin(), options_.stores.end(), name) != options_.stores.end();
  }

  /// What it was to go on for, in the last round.
  [[nodiscard]] bool found() const {
    const auto& findings = rounds_.back().findings;
    return std::any_of(findings.begin(), findings.end(), [this](const auto& finding) {
      return !finding.violations.empty() && std::find(options_.until.begin(), options_.until.end(),
                                                      finding.name) != options_.until.end();
    });
  }

  RoundResult hold(const torture::TopologyKind& kind, std::uint64_t seed,
                   const std::string& repeat) {
    const auto directory =
        fs::path(options_.keep) / (kind.name + "-" + std::to_string(seed) + repeat);
    fs::remove_all(directory);
    fs::create_directories(directory);
    const auto topology = kind.make();
    for (const auto& what : topology->left_out()) left_out_.insert(kind.name + ", " + what);
    torture::RoundPlan plan;
    plan.topology = kind.name;
    plan.seed = seed;
    plan.processes = options_.processes;
    plan.hands = options_.hands;
    plan.lasts = to_duration(options_.seconds);
    plan.directory = directory;
    plan.command = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "interlock";
    plan.prefix = "torture-";
    plan.preload = torture::preload_library();
    torture::hold_round(*topology, plan);
    return judge(directory);
  }

  void repeat(const torture::TopologyKind& kind, RoundResult& round, interlock::TimePoint until) {
    for (int i = 1; i <= options_.repeats && interlock::BootClock::now() < until; ++i) {
      const auto again = hold(kind, round.seed, "-again");
      ++round.repeats;
      for (const auto& finding : again.findings) {
        if (!finding.violations.empty()) ++round.came_again[finding.name];
      }
      fs::remove_all(again.directory);
    }
  }

  Options options_;
  std::vector<torture::Known> known_;
  std::vector<RoundResult> rounds_;
  std::set<std::string> left_out_;
  bool failed_ = false;
};

void list() {
  for (const auto& kind : torture::topologies()) std::cout << kind.name << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string(argv[1]) == "worker")
      return torture::run_worker([](const std::string& url) { return torture::connect(url); });
    if (argc > 1 && std::string(argv[1]) == "touch")
      return torture::run_touch({argv + 2, argv + argc});
    Options options;
    CLI::App app(
        "Tries hard to break the locks of every store, and says with a seed how to try it again.");
    app.add_option("--store", options.stores, "Only this one; may be repeated (--list shows all)");
    app.add_option("--seed", options.seed,
                   "Of the first round of each store; the next ones count on");
    app.add_option("--minutes", options.minutes,
                   "Round after round for so long; each store once at least");
    app.add_option("--seconds", options.seconds, "How long faults go on in a round");
    app.add_option("--processes", options.processes, "Worker processes");
    app.add_option("--hands", options.hands, "Threads of each that take locks");
    app.add_option("--until", options.until,
                   "End when this check has found something; may be repeated");
    app.add_option("--repeats", options.repeats, "How often a round that failed is repeated");
    app.add_option("--keep", options.keep, "Where histories of failed rounds are kept");
    app.add_option("--known", options.known, "The table of what is known to be wrong");
    app.add_option("--judge", options.judge,
                   "Hold no round, and judge the history in this directory");
    app.add_flag("--json", options.json, "Print JSON");
    app.add_flag_callback(
        "--list",
        [] {
          list();
          throw CLI::Success();
        },
        "The stores");
    CLI11_PARSE(app, argc, argv);
    return Session(std::move(options)).run();
  } catch (const std::exception& error) {
    std::cerr << "torture: " << error.what() << '\n';
    return 2;
  }
}
