// At most three at once, out of eight that want to.
#include <interlock/interlock.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

int main() {
  auto locks = interlock::connect("memory:");
  interlock::Semaphore calls(locks, "api-calls", 3);

  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 8; ++i) {
      workers.emplace_back([&] {
        for (int n = 0; n < 5; ++n) {
          auto slot = calls.acquire();
          const int now = ++inside;
          int seen = most;
          while (seen < now && !most.compare_exchange_weak(seen, now)) {
          }
          std::this_thread::sleep_for(2ms);
          --inside;
        }
      });
    }
  }
  std::cout << "at most " << most << " at once\n";
  expect(most <= 3, "never more than three");

  // A big job takes two of the three slots, both or none.
  interlock::Semaphore big(locks, "api-calls", 3, {}, 2);
  {
    auto two = big.acquire();
    auto one = calls.acquire();
    expect(!calls.try_acquire(), "two and one are three");
  }

  // All clients have to agree on the capacity; one that does not is told, and not let in.
  auto slot = calls.acquire();
  interlock::Semaphore mistaken(locks, "api-calls", 5);
  try {
    auto attempt = mistaken.try_acquire();
    expect(false, "a capacity of 5 is wrong");
  } catch (const interlock::Error& error) {
    std::cout << error.what() << '\n';
    expect(error.errc() == interlock::Errc::wrong_capacity, "the error says what is wrong");
  }
}
