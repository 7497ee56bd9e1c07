// Tests wait for what has to come, however loaded the machine is, and never for a time to pass.
#pragma once

#include <chrono>
#include <cstdlib>
#include <thread>

#include "interlock/clock.hpp"

namespace interlock::testing_support {

/// Longer than anything takes unless it hangs. With planted bugs, much of what is waited for never comes: less will do.
inline const Duration kPatience = [] {
  const auto* const seconds = std::getenv("INTERLOCK_TEST_PATIENCE");
  return std::chrono::seconds(seconds == nullptr ? 60 : std::atoi(seconds));
}();

/// Looks again and again until it is so. False: it never was.
template <class Condition>
bool eventually(Condition condition, Duration within = kPatience) {
  const auto until = BootClock::now() + within;
  while (!condition()) {
    if (BootClock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace interlock::testing_support
