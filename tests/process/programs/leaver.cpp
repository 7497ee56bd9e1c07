// leaver URL: holds leases in a local, in a static and in a thread, waits for another one, says
// "ready", and then ends the way it is told: "exit", "return", or "lose": exits from the callback of a
// lease that it evicts itself. Nothing but its own release can
// free what it held in time: the store is told to watch no process, and the TTL is long.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

#include "interlock/interlock.hpp"

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const auto locks = interlock::connect(argv[1]);
  const interlock::Options lasting{.ttl = 1h, .process = 0};

  static interlock::Lease in_a_static = interlock::Mutex(locks, "static", lasting).acquire();
  const auto in_a_local = interlock::MultiLock(locks, {"local/1", "local/2"}, lasting).acquire();
  std::thread([lease = interlock::Mutex(locks, "thread", lasting).acquire()] {
    std::this_thread::sleep_for(1h);
  }).detach();
  interlock::Mutex(locks, "taken", lasting).acquire(interlock::Wait::forever(), [](auto) {});

  std::puts("ready");
  std::fflush(stdout);
  std::string how;
  std::getline(std::cin, how);
  if (how == "exit") std::exit(0);
  if (how == "lose") {
    const auto lost = interlock::Mutex(locks, "lost", lasting).acquire();
    const std::stop_callback on_lost(lost.lost(), [] { std::exit(0); });
    locks.evict("lost", lost.owner());
    std::this_thread::sleep_for(1h);
  }
  return 0;
}
