// Real processes on a real store, doing what the model's do: to measure what calls cost, and to see
// how far the model is off.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model.hpp"

namespace cli::scale {

/// What a run of real processes came to.
struct Run {
  double seconds = 0;
  double cycles_per_second = 0;
  Duration mean_wait{};
  Duration median_wait{};
  Duration p99_wait{};
  double calls_per_cycle = 0;
  double wakes_per_cycle = 0;
  Duration client_cpu{};  ///< of all processes
  Duration server_cpu{};  ///< of the server's processes, if they are on this machine
  bool server_seen = false;
  double outside = 0;  ///< cores that were busy with something else
  struct Seen {
    std::uint64_t count = 0;
    Duration median{};
  };
  std::array<Seen, kSteps> calls{};  ///< how long each kind of call took
  std::uint64_t cycles = 0;
  [[nodiscard]] const Seen& call(Step step) const {
    return calls.at(static_cast<std::size_t>(step));
  }
};

/// Starts that many processes, lets them work for the workload's duration, and puts their figures
/// together. Throws Error, or std::runtime_error, for what one of them could not do. The caller must
/// not have connected to a store, as the processes are forked from it.
Run run_crew(const std::string& url, const Workload& workload);
/// The best of three: whatever else runs on this machine only ever slows it down.
Run best_run(const std::string& url, const Workload& workload);

/// What calls take on a lock with about that many waiters.
struct Crowded {
  static constexpr int kTimes = 24;  ///< how often each call was made
  int waiters = 0;
  /// How many were there on average during these calls.
  [[nodiscard]] int records(Step step) const {
    return waiters + (step == Step::beat || step == Step::renew ? kTimes : kTimes / 2);
  }
  Duration join{};
  Duration beat{};
  Duration claim{};
  Duration pass{};
  Duration renew{};
};
std::vector<Crowded> run_crowded(const std::string& url, const std::vector<int>& waiters);

/// How many cores this process may use.
int cores_here();

}  // namespace cli::scale
