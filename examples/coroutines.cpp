// Five hundred coroutines wait for one lock, and take no thread while they do.
#include <interlock/interlock.hpp>

#include <coroutine>
#include <exception>
#include <iostream>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

// The smallest coroutine there is: it starts at once, and nobody waits for it. Use your own.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Log {
  std::vector<int> order;             // all three are protected
  std::set<std::thread::id> threads;  // by the lock
  int counter = 0;
};

// Parameters by value or outliving the coroutine: the caller has long gone on when it resumes.
Detached visit(interlock::Mutex mutex, int number, Log& log, std::latch& done) {
  {
    interlock::Lease lease = co_await mutex.async_acquire();
    log.order.push_back(number);
    log.threads.insert(std::this_thread::get_id());
    ++log.counter;
  }
  done.count_down();
}

// The form that gives an Attempt, with a bound.
Detached hurry(interlock::Mutex mutex, interlock::Outcome& outcome, std::latch& done) {
  auto attempt = co_await mutex.async_try_acquire(interlock::Wait::for_(20ms));
  outcome = attempt.outcome();
  done.count_down();
}

}  // namespace

int main() {
  constexpr int kVisitors = 500;
  auto locks = interlock::connect("memory:");
  interlock::Mutex mutex(locks, "museum");
  Log log;

  auto closed = mutex.acquire();  // so that they all have to wait
  std::latch late(1);
  auto outcome = interlock::Outcome::granted;
  hurry(mutex, outcome, late);
  late.wait();
  expect(outcome == interlock::Outcome::timed_out, "20 ms were not enough");

  std::latch done(kVisitors);
  for (int i = 0; i < kVisitors; ++i) visit(mutex, i, log, done);
  closed.release();
  done.wait();

  std::cout << log.counter << " visitors on " << log.threads.size() << " thread\n";
  expect(log.counter == kVisitors, "everybody got in");
  expect(log.threads.size() == 1, "and all of them were resumed on the client's one thread");
  for (int i = 0; i < kVisitors; ++i) {
    expect(log.order[static_cast<std::size_t>(i)] == i, "first come, first served");
  }
}
