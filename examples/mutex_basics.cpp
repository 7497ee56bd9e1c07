// One at a time: four threads add to one counter, and no update is lost.
//
// The same code works between processes and machines: only the URL changes.
#include <interlock/interlock.hpp>

#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

int main() {
  auto locks = interlock::connect("memory:");
  interlock::Mutex mutex(locks, "counter", {.ttl = 10s, .label = "mutex_basics"});

  int counter = 0;  // not atomic: the lock is all that protects it
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        for (int n = 0; n < 250; ++n) {
          auto lease = mutex.acquire();  // waits in line
          ++counter;
        }  // the lease goes out of scope, and the next in line is woken
      });
    }
  }
  std::cout << "counted to " << counter << '\n';
  expect(counter == 1000, "four times 250 is 1000");

  // A lease knows what it is, how long it is good for, and how it came about.
  auto lease = mutex.acquire();
  std::cout << lease.resource() << " is " << to_string(lease.state()) << ", fence "
            << lease.fence().value << ", " << interlock::format_duration(lease.time_remaining())
            << " left\n";
  expect(static_cast<bool>(lease), "it is held");
  expect(!mutex.try_acquire(), "nobody else gets it, not even this thread");
  expect(lease.release() == interlock::LeaseState::released, "it was ours until now");
  expect(lease.release() == interlock::LeaseState::released, "releasing twice is fine");

  // The std spelling, where code wants a std lock. It can't tell you that the lease was lost.
  std::scoped_lock lock(mutex);
  expect(mutex.try_acquire().outcome() == interlock::Outcome::busy, "std::scoped_lock holds it");
}
