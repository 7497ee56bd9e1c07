// leaver URL: holds leases in a local, in a static and in a thread, waits for another one, says
// "ready", and then ends the way it is told: "exit" or "return". Nothing but its own release can
// free what it held in time: the store is told to watch no process, and the TTL is long.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
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
  return 0;
}
