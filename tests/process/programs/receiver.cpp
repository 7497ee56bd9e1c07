// receiver URL HOW: ends at the moment at which a callback is given a lease, "callback" from within it,
// "main" on another thread, or "busy" from within it while the client's own thread is still about it. Nothing
// but the program's own release can free the lock: the store is told to watch no process, and the TTL is long.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "interlock/interlock.hpp"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string_view how = argv[2];
  static std::atomic<bool> given{false};
  interlock::ClientOptions options;
  if (how == "busy") {
    options.executor = [](std::function<void()> callback) {
      std::thread(std::move(callback)).detach();
      std::this_thread::sleep_for(50ms);
    };
  }
  const auto locks = interlock::connect(argv[1], options);
  interlock::Mutex(locks, "r", {.ttl = 1h, .process = 0})
      .acquire(interlock::Wait::once(), [how](interlock::Attempt attempt) {
        auto lease = std::move(attempt).value();
        if (how != "main") std::exit(0);
        static interlock::Lease kept;
        kept = std::move(lease);
        given = true;
      });
  while (!given) std::this_thread::yield();
  return 0;
}
