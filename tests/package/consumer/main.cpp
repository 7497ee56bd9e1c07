#include <interlock/interlock.hpp>

#include <exception>
#include <iostream>

int main(int count, char** arguments) {
  try {
    auto locks = interlock::connect(count > 1 ? arguments[1] : "memory:");
    interlock::Mutex mutex(locks, "x", {.retry = interlock::Retry::none()});
    auto lease = mutex.acquire();
    return lease.fence().value > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
