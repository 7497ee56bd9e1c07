// readers URL NAME COUNT: so many threads of one client wait to read. Says how many got in, or what went wrong, and how
// many tries it took at most; holds on until its input ends.
#include <algorithm>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "interlock/interlock.hpp"
#include "process/programs/say.hpp"

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  const auto locks = interlock::connect(argv[1]);
  std::mutex mutex;
  std::vector<interlock::Lease> leases;
  int tries = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::stoi(argv[3]); ++i) {
      threads.emplace_back([&] {
        try {
          auto lease = interlock::RwLock(locks, argv[2], {.ttl = std::chrono::minutes(10)}).read();
          const std::lock_guard lock(mutex);
          tries = std::max(tries, static_cast<int>(lease.attempts()));
          leases.push_back(std::move(lease));
        } catch (const interlock::Error& error) {
          say(std::string("error ") + error.what());
        }
      });
    }
  }
  say("in " + std::to_string(leases.size()));
  say("tries " + std::to_string(tries));
  for (std::string line; std::getline(std::cin, line);) {
  }
}
