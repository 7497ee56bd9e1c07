// What a history has to show. Each check is a function of the history alone, and says how much it looked at: a check
// that looked at nothing proves nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checks/index.hpp"

namespace torture::checks {

struct Violation {
  std::string text{};
  std::vector<Event>
      events{};  ///< the smallest part of the history that shows it, in the order of time
};

struct Finding {
  std::string name{};
  std::uint64_t looked_at = 0;
  /// Conflicts across a fault for which the store's promise allows them.
  std::uint64_t allowed = 0;
  std::vector<Violation> violations{};
  std::map<std::string, std::int64_t> figures{};  ///< what is counted and breaks no promise
};

/// No two beliefs conflict in time.
Finding exclusion(const Index& index);
/// Fences of exclusive grants rise, in the order of grants that did not overlap, and are unique.
Finding fences(const Index& index);
/// The fenced register lost no update and took no stale write. Counts the updates that the other one lost.
Finding registers(const Index& index);
/// Each call is answered once; a loss is told once, and not after the release.
Finding told_once(const Index& index);
/// Busy, timed out, exhausted, cancelled, lost and unreachable are told when they are true.
Finding answers(const Index& index);
/// Of two waiters that both stayed, the first to come is the first to be granted.
Finding order(const Index& index);
/// Every wait ends.
Finding ends(const Index& index);
/// Somebody is granted soon after all faults are healed.
Finding recovery(const Index& index);
/// A lease is lost for a reason only.
Finding losses(const Index& index);
/// The store keeps nothing when all is over.
Finding left(const Index& index);
/// Threads, descriptors and memory come back to where they were; no thread spins.
Finding figures(const Index& index);

/// All of these, in this order.
std::vector<Finding> check(const Index& index);

/// In the order of time, each once.
std::vector<Event> part_of(std::vector<const Event*> events);
/// "12.3 ms"
std::string text_of(std::int64_t ns);

}  // namespace torture::checks
