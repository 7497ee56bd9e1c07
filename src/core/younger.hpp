// Who came last to a circle: where it is found, and where it is ended, they have to agree on that.
#pragma once

#include <tuple>

#include "interlock/deadlock.hpp"

namespace interlock::core {

inline bool younger(const Deadlock::Member& one, const Deadlock::Member& other) {
  return std::tie(one.waited, one.waiter) < std::tie(other.waited, other.waiter);
}

}  // namespace interlock::core
