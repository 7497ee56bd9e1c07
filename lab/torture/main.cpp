// torture: tries hard to break the locks of every store, and says with a seed how to try it again.
#include <CLI/CLI.hpp>

#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "director.hpp"
#include "topology.hpp"
#include "worker.hpp"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

fs::path program_directory() { return fs::read_symlink("/proc/self/exe").parent_path(); }

struct Options {
  std::vector<std::string> stores{};
  std::uint64_t seed = 0;
  double minutes = 0;
  double seconds = 15;
  int processes = 3;
  int hands = 3;
  std::string keep{};
};

int run(const Options& options) {
  const auto until = interlock::BootClock::now() +
                     std::chrono::duration_cast<interlock::Duration>(
                         std::chrono::duration<double, std::ratio<60>>(options.minutes));
  auto seed = options.seed;
  do {
    for (const auto& kind : torture::topologies()) {
      if (!options.stores.empty() && std::find(options.stores.begin(), options.stores.end(),
                                               kind.name) == options.stores.end())
        continue;
      const fs::path directory = fs::path(options.keep) / (kind.name + "-" + std::to_string(seed));
      fs::create_directories(directory);
      const auto topology = kind.make();
      torture::hold_round(*topology, {.topology = kind.name,
                                      .seed = seed,
                                      .processes = options.processes,
                                      .hands = options.hands,
                                      .lasts = std::chrono::duration_cast<interlock::Duration>(
                                          std::chrono::duration<double>(options.seconds)),
                                      .directory = directory,
                                      .command = program_directory().parent_path() / "interlock",
                                      .prefix = "torture-"});
    }
    ++seed;
  } while (interlock::BootClock::now() < until);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "worker") return torture::run_worker();
  if (argc > 1 && std::string(argv[1]) == "touch")
    return torture::run_touch({argv + 2, argv + argc});
  Options options;
  CLI::App app("Tries hard to break the locks of every store.");
  app.add_option("--store", options.stores, "Only this one; may be repeated");
  app.add_option("--seed", options.seed, "Of the first round");
  app.add_option("--minutes", options.minutes,
                 "Round after round for so long; each store once at least");
  app.add_option("--seconds", options.seconds, "How long faults go on in each round");
  app.add_option("--processes", options.processes, "Worker processes");
  app.add_option("--hands", options.hands, "Threads of each");
  app.add_option("--keep", options.keep, "Where histories are kept")->required();
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
