// For tests and benchmarks of what can be awaited.
#pragma once

#include <coroutine>
#include <exception>

namespace interlock::testing_support {

/// A coroutine that runs by itself.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace interlock::testing_support
