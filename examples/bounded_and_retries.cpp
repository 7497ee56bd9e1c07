// How long to wait, in every form: not at all, so long, so often, until told to stop.
#include <interlock/interlock.hpp>

#include <iostream>
#include <thread>

#include "expect.hpp"

using namespace std::chrono_literals;
using interlock::Outcome;

namespace {

void tell(const char* how, const interlock::Attempt& attempt) {
  std::cout << how << ": " << to_string(attempt.outcome()) << " after "
            << interlock::format_duration(attempt.waited()) << " and " << attempt.attempts()
            << " attempts\n";
}

}  // namespace

int main() {
  auto locks = interlock::connect("memory:");
  interlock::Mutex mutex(locks, "printer");
  auto holder = mutex.acquire();

  // One shot: never waits, never queues, never overtakes anybody.
  auto attempt = mutex.try_acquire();
  tell("one shot", attempt);
  expect(attempt.outcome() == Outcome::busy, "taken is busy");

  // Bounded by time: a place in the queue, for 50 ms at most.
  attempt = mutex.try_acquire_for(50ms);
  tell("50 ms", attempt);
  expect(attempt.outcome() == Outcome::timed_out, "it was taken all the time");
  expect(attempt.waited() >= 50ms, "and it did wait");

  // Bounded by tries: one-shots with growing pauses, not in the queue.
  attempt = mutex.try_acquire_times({.attempts = 4, .first = 5ms, .max = 20ms});
  tell("4 tries", attempt);
  expect(attempt.outcome() == Outcome::exhausted && attempt.attempts() == 4, "four and no more");

  // Until told to stop. The place in the queue is cleaned up.
  std::stop_source stop;
  const std::jthread impatient([&] {
    std::this_thread::sleep_for(20ms);
    stop.request_stop();
  });
  attempt = mutex.try_acquire_for(1h, stop.get_token());
  tell("stopped", attempt);
  expect(attempt.outcome() == Outcome::cancelled, "stopped is neither busy nor timed out");

  // acquire() gives a lease or throws. max_wait bounds it, so that no wait lasts forever.
  interlock::Mutex bounded(locks, "printer", {.max_wait = 30ms});
  try {
    auto lease = bounded.acquire();
    expect(false, "nobody could get it");
  } catch (const interlock::Error& error) {
    std::cout << error.what() << '\n';
    expect(error.errc() == interlock::Errc::timed_out, "the error says why");
  }

  // Nobody who gave up has left anything behind.
  holder.release();
  expect(locks.inspect().resources.empty(), "no holder, no waiter");
  expect(static_cast<bool>(mutex.try_acquire()), "free again");
}
