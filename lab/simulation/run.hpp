// One run: a few nodes, clients and workers, and what goes wrong with them for some seconds. Then everything heals, and
// the run is judged. The seed is the whole run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace simulation {

/// What mostly goes wrong.
enum class Trouble : std::uint8_t {
  any,     ///< the seed decides
  all,     ///< everything but clocks
  clocks,  ///< clocks that are set forward; then only fences count
  losses,  ///< nodes that lose their data, and nodes that are out of reach
};

struct Options {
  std::uint64_t seed = 1;
  Trouble trouble = Trouble::any;
  bool traces = false;
  /// Faults and workers that are left out, by number.
  std::set<std::size_t> without_faults{};
  std::set<std::size_t> without_workers{};
};

struct Result {
  std::string check{};  ///< that was violated; empty: none
  std::string what{};
  std::vector<std::string> trace{};
  std::uint64_t events = 0, grants = 0;
  std::size_t faults = 0, workers = 0;
};

Result run(const Options& options);

/// Leaves out what the violation does not need, and traces what is left. At most so many runs.
Options shorten(Options options, const std::string& check, int runs = 200);

}  // namespace simulation
