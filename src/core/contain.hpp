// Runs a step of a thread that works for many. If the system refuses what the step needs (memory, a
// thread), the step ends, and not the thread with all that it does for others.
#pragma once

#include <exception>

namespace interlock::core {

/// False: it ended with an exception. Whoever asked for it is told nothing, and gives up at its deadline.
template <class Step>
bool contain(const Step& step) {
  try {
    step();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace interlock::core
