#include <algorithm>

#include "checks/checks.hpp"
#include "interlock/duration.hpp"

namespace torture::checks {

std::vector<Finding> check(const Index& index) {
  std::vector<Finding> findings;
  for (const auto look : {exclusion, fences, registers, told_once, answers, order, ends, recovery,
                          losses, left, figures}) {
    findings.push_back(look(index));
  }
  return findings;
}

std::vector<Event> part_of(std::vector<const Event*> events) {
  std::stable_sort(events.begin(), events.end(), [](const Event* a, const Event* b) {
    // Events of one history lie side by side: of two at the same time, the first in it is first.
    return a->t != b->t ? a->t < b->t : std::less<>()(a, b);
  });
  events.erase(std::unique(events.begin(), events.end()), events.end());
  std::vector<Event> part;
  part.reserve(events.size());
  for (const auto* event : events) part.push_back(*event);
  return part;
}

std::string text_of(std::int64_t ns) { return interlock::format_duration(interlock::Duration(ns)); }

}  // namespace torture::checks
