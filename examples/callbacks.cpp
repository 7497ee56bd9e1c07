// Asynchronous acquisitions without coroutines: a callback, run where the program wants it.
#include <interlock/interlock.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <mutex>
#include <thread>

#include "expect.hpp"

using namespace std::chrono_literals;
using interlock::Attempt;
using interlock::Outcome;
using interlock::Wait;

namespace {

// A program's own event loop.
class Loop {
 public:
  void post(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(what));
    changed_.notify_one();
  }

  void run_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !posted_.empty(); });
    const auto what = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    what();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace

int main() {
  // By default, callbacks run on a thread of the client's own.
  {
    auto locks = interlock::connect("memory:");
    interlock::Mutex mutex(locks, "door");
    std::promise<interlock::Lease> came;
    mutex.acquire(Wait::forever(),
                  [&](Attempt attempt) { came.set_value(std::move(attempt).value()); });
    auto lease = came.get_future().get();
    std::cout << "granted, fence " << lease.fence().value << '\n';
    expect(static_cast<bool>(lease), "the lease was handed over to this thread");
  }

  // With an executor, they run where you say: here, on the main thread.
  Loop loop;
  auto locks = interlock::connect(
      "memory:", {.executor = [&loop](std::function<void()> what) { loop.post(std::move(what)); }});
  interlock::Mutex mutex(locks, "door");
  auto held = mutex.acquire();

  // Every outcome comes as a value. A callback never has to catch anything.
  const auto main_thread = std::this_thread::get_id();
  Outcome outcome = Outcome::granted;
  const auto note = [&](const Attempt& attempt) {
    expect(std::this_thread::get_id() == main_thread, "on the loop's thread");
    outcome = attempt.outcome();
    std::cout << to_string(outcome) << '\n';
  };
  mutex.acquire(Wait::once(), note);
  loop.run_one();
  expect(outcome == Outcome::busy, "one shot");
  mutex.acquire(Wait::for_(10ms), note);
  loop.run_one();
  expect(outcome == Outcome::timed_out, "bounded by time");
  std::stop_source stop;
  mutex.acquire(Wait::forever(stop.get_token()), note);
  stop.request_stop();
  loop.run_one();
  expect(outcome == Outcome::cancelled, "stopped");
  mutex.acquire(Wait::forever(), note);
  held.release();
  loop.run_one();
  expect(outcome == Outcome::granted, "waited");
}
