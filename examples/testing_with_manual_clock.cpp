// How to test code that uses locks, without sleeping: a clock that is moved by hand.
//
// Give the same ManualClock to the store and to the client. Nothing expires, and no wait ends,
// until the test says so.
#include <interlock/interlock.hpp>

#include <functional>
#include <future>
#include <iostream>
#include <thread>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

// The code under test: does the job unless somebody else is at it, and says whether it did.
class Nightly {
 public:
  explicit Nightly(const interlock::Client& locks) : mutex_(locks, "nightly", {.ttl = 30s}) {}
  bool run(const std::function<void()>& job) const {
    auto lease = mutex_.try_acquire_for(10s);
    if (!lease) return false;
    job();
    return true;
  }

 private:
  interlock::Mutex mutex_;
};

// Background work (renewals) happens on another thread, in real time: wait until it is done.
void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

}  // namespace

int main() {
  auto clock = std::make_shared<interlock::ManualClock>();
  interlock::MemoryStore store(clock);
  interlock::Client ours(store.open(), {.clock = clock});
  interlock::Client theirs(store.open(), {.clock = clock});
  const Nightly nightly(ours);
  const auto waiters = [&] {
    const auto seen = theirs.inspect({.resources = {"nightly"}}).resources;
    return seen.empty() ? 0U : seen.front().waiters.size();
  };

  // It runs when nobody is in the way.
  bool ran = false;
  expect(nightly.run([&] { ran = true; }) && ran, "free");

  // Somebody is, for longer than it waits: ten seconds pass in no time.
  {
    auto other = interlock::Mutex(theirs, "nightly").acquire();
    auto result = std::async(std::launch::async, [&] { return nightly.run([] {}); });
    wait_until([&] { return waiters() == 1; });
    clock->advance(10s);
    expect(!result.get(), "gave up after 10 s");
  }

  // Somebody crashed while holding it: nobody renews, and the TTL frees it.
  {
    auto crashed = interlock::Mutex(theirs, "nightly", {.ttl = 8s, .renew = false}).acquire();
    auto result = std::async(std::launch::async, [&] { return nightly.run([] {}); });
    wait_until([&] { return waiters() == 1; });
    clock->advance(8s);
    expect(result.get(), "ran after 8 s");
    expect(crashed.lost().stop_requested(), "and the other one knows that it lost it");
  }

  // A lease that renews itself lasts: move time in steps shorter than its TTL, and let it renew.
  {
    auto lease = interlock::Mutex(ours, "nightly", {.ttl = 30s}).acquire();
    for (int i = 0; i < 360; ++i) {
      clock->advance(10s);
      wait_until([&] { return lease.time_remaining() > 25s; });
    }
    expect(static_cast<bool>(lease), "an hour later it is still ours");
  }

  // One that must not be held for longer than five minutes, because its holder may hang: renewal
  // ends then, and the lease with its last TTL.
  {
    interlock::Mutex limited(ours, "nightly", {.ttl = 30s, .max_hold = 5min});
    auto lease = limited.acquire();
    for (int i = 0; i < 29; ++i) {
      clock->advance(10s);
      wait_until([&] { return lease.time_remaining() > 25s; });
    }
    clock->advance(40s);
    expect(!lease, "over");
    std::cout << "more than an hour went by; the last lease is over: " << lease.lost_reason()
              << '\n';
  }
}
