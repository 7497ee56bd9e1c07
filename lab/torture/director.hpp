// One round: workers over a store, and what goes wrong with both, as the seed says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "topology.hpp"

namespace torture {

struct RoundPlan {
  std::string topology{};
  bool given = false;  ///< a store of the user's own: for what the report says
  std::uint64_t seed = 0;
  int processes = 3;
  int hands = 3;
  interlock::Duration lasts = std::chrono::seconds(15);  ///< until the calm
  std::filesystem::path directory{};                     ///< of the history; empty at first
  std::filesystem::path command{};                       ///< the interlock command
  std::string prefix{};                                  ///< of all names
  std::vector<std::string> self{"torture"};              ///< see WorkerPlan
  std::filesystem::path preload{};  ///< a library for workers, see preload/; empty: none
  std::vector<std::string>
      environment{};  ///< of workers, besides that of this process: "NAME=value"
};

/// A fault of the round, and when.
struct Step {
  interlock::Duration at{};
  interlock::Duration lasts{};
  std::size_t fault = 0;
  std::uint64_t seed = 0;  ///< of what the fault itself chooses
};

/// Of the faults from `first` to before `end`. The same for the same seed. Several may be there at once; none twice at once.
std::vector<Step> make_schedule(std::uint64_t seed, std::size_t first, std::size_t end,
                                interlock::Duration lasts);

/// Comes back when all processes of the round have ended; the history is in the plan's directory. Throws
/// std::exception if the round can't be held.
void hold_round(Topology& topology, const RoundPlan& plan);

}  // namespace torture
