// receiver URL HOW: ends at the moment at which a callback is given a lease, "callback" from within it,
// "main" on another thread. Nothing but the program's own release can free the lock: the store is told to
// watch no process, and the TTL is long.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "interlock/interlock.hpp"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const bool in_callback = std::string_view(argv[2]) == "callback";
  static std::atomic<bool> given{false};
  const auto locks = interlock::connect(argv[1]);
  interlock::Mutex(locks, "r", {.ttl = 1h, .process = 0})
      .acquire(interlock::Wait::once(), [in_callback](interlock::Attempt attempt) {
        static interlock::Lease lease;
        lease = std::move(attempt).value();
        if (in_callback) std::exit(0);
        given = true;
      });
  while (!given) std::this_thread::yield();
  return 0;
}
