// Numbers that somebody else has written.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interlock/clock.hpp"

namespace interlock::core {

/// So many units of time, and at most a century of either sign: the sum of two never overflows.
template <class Unit>
constexpr Duration bounded(std::int64_t count) noexcept {
  constexpr std::int64_t kMost =
      std::chrono::duration_cast<Unit>(std::chrono::hours(24 * 36525)).count();
  return Unit(std::clamp(count, -kMost, kMost));
}

}  // namespace interlock::core
