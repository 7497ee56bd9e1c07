#include <interlock/interlock.hpp>

int main() {
  auto locks = interlock::connect("memory:");
  interlock::Mutex mutex(locks, "x");
  auto lease = mutex.acquire();
  return lease.fence().value > 0 ? 0 : 1;
}
