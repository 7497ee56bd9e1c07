// The asynchronous forms: callbacks and coroutines, no thread per waiter.
#include <atomic>
#include <coroutine>
#include <filesystem>
#include <future>
#include <latch>
#include <mutex>

#include "conformance/suite.hpp"
#include "detached.hpp"

namespace interlock::conformance {
namespace {

using testing_support::Detached;

CONFORMANCE_SUITE(Async);

std::ptrdiff_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// What a coroutine got: a lease, or the error that it met.
struct Got {
  Lease lease{};
  Errc error{};
};

Detached take(Mutex mutex, std::stop_token stop, std::promise<Got>& taken) {
  Got got;
  try {
    got.lease = co_await mutex.async_acquire(std::move(stop));
  } catch (const Error& error) {
    got.error = error.errc();
  }
  taken.set_value(std::move(got));
}

Detached attempt(Mutex mutex, Wait wait, std::promise<Attempt>& made) {
  made.set_value(co_await mutex.async_try_acquire(std::move(wait)));
}

TEST_P(Async, ACallbackGetsTheLeaseOnAnotherStack) {
  COVERS(Rule<12>);
  const Mutex mutex(client(), "r");
  std::promise<std::thread::id> where;
  std::promise<Attempt> made;
  mutex.acquire(Wait::forever(), [&](Attempt result) {
    where.set_value(std::this_thread::get_id());
    made.set_value(std::move(result));
  });
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
  auto lease = made.get_future().get().value();
  EXPECT_TRUE(lease);
  EXPECT_FALSE(mutex.try_acquire());
  EXPECT_EQ(lease.release(), LeaseState::released);
}

TEST_P(Async, EveryOutcomeArrivesAsAValue) {
  COVERS(Rule<10>);
  const Mutex mutex(client(), "r");
  const auto held = mutex.acquire();
  const auto outcome = [&](Wait wait) {
    std::promise<Outcome> told;
    mutex.acquire(std::move(wait), [&](const Attempt& result) {
      EXPECT_FALSE(result);
      told.set_value(result.outcome());
    });
    return told.get_future().get();
  };
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(outcome(Wait::once()), Outcome::busy);
  EXPECT_EQ(outcome(Wait::for_(100ms)), Outcome::timed_out);
  EXPECT_EQ(outcome(Wait::times({.attempts = 2, .first = 1ms})), Outcome::exhausted);
  EXPECT_EQ(outcome(Wait::forever(stopped.get_token())), Outcome::cancelled);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
}

// Row 2.1.
TEST_P(Async, ACoroutineAwaitsTheLease) {
  COVERS(Rule<4>);
  const Mutex mutex(client(), "r");
  auto held = mutex.acquire();
  std::promise<Got> taken;
  auto future = taken.get_future();
  take(mutex, {}, taken);
  ASSERT_TRUE(eventually([&] { return waiters("r") == 1; }));
  EXPECT_EQ(future.wait_for(0s), std::future_status::timeout);
  held.release();
  EXPECT_TRUE(future.get().lease);
}

TEST_P(Async, ACancelledCoroutineGetsTheErrorAndLeavesNothing) {
  COVERS(Rule<9>);
  const Mutex mutex(client(), "r");
  const auto held = mutex.acquire();
  std::stop_source stop;
  std::promise<Got> taken;
  take(mutex, stop.get_token(), taken);
  ASSERT_TRUE(eventually([&] { return waiters("r") == 1; }));
  stop.request_stop();
  EXPECT_EQ(taken.get_future().get().error, Errc::cancelled);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
}

TEST_P(Async, ACoroutineMayAskForAnAttemptInstead) {
  COVERS(Rule<10>);
  const Mutex mutex(client(), "r");
  const auto held = mutex.acquire();
  std::promise<Attempt> made;
  attempt(mutex, Wait::for_(100ms), made);
  EXPECT_EQ(made.get_future().get().outcome(), Outcome::timed_out);
}

TEST_P(Async, CallbacksRunOnTheExecutorThatWasGiven) {
  COVERS(Rule<12>);
  std::mutex mutex;
  std::vector<std::function<void()>> work;
  const auto locks = client({.executor = [&](std::function<void()> item) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(item));
  }});
  const auto size = [&] {
    const std::lock_guard lock(mutex);
    return work.size();
  };
  bool called = false;
  Mutex(locks, "r").acquire(Wait::forever(), [&](const Attempt& result) {
    called = true;
    EXPECT_TRUE(result);
  });
  ASSERT_TRUE(eventually([&] { return size() == 1; }));
  EXPECT_FALSE(called);
  work.front()();
  EXPECT_TRUE(called);
  work.clear();
}

TEST_P(Async, ACallbackThatTakesItsTimeDoesNotHoldUpRenewals) {
  COVERS(Rule<7>);
  const auto locks = client();
  const auto lease = Mutex(locks, "other", {.ttl = 1s}).acquire();
  std::promise<void> done;
  Mutex(locks, "r").acquire(Wait::forever(), [&](const Attempt&) {
    std::this_thread::sleep_for(1500ms);
    done.set_value();
  });
  done.get_future().get();
  EXPECT_TRUE(lease);
}

TEST_P(Async, TenThousandWaitersAreServedInOrderByAFewThreads) {
  COVERS(Rule<3>, Rule<4>, Rule<12>);
#ifdef NDEBUG
  const int many = GetParam().name == "memory" ? 10000 : 500;
#else  // a queue costs its length, and sanitizers cost their own
  const int many = GetParam().name == "memory" ? 2000 : 100;
#endif
  const int waiters_in_all = store().faithful() ? many : 30;
  const Mutex mutex(client(), "r");
  auto held = mutex.acquire();
  const auto before = threads_now();

  std::vector<int> served;  // one at a time: the lock is what orders it
  std::latch all(waiters_in_all);
  for (int i = 0; i < waiters_in_all; ++i) {
    mutex.acquire(Wait::forever(), [&, i](Attempt result) {
      ASSERT_TRUE(result);
      served.push_back(i);
      result->release();
      all.count_down();
    });
  }
  EXPECT_LE(threads_now() - before, 4) << "no thread per waiter";
  held.release();
  all.wait();
  EXPECT_EQ(served.size(), static_cast<std::size_t>(waiters_in_all));
  if (store().faithful()) {  // else calls may overtake each other on their way
    const auto late = std::is_sorted_until(served.begin(), served.end());
    EXPECT_EQ(late, served.end()) << *late << " came after " << *(late - 1);
  }
}

// A client's first calls, before it is connected. Expected: they are served as they were made.
TEST_P(Async, WhatAClientAsksForFirstIsServedInOrder) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "calls may overtake each other on their way";
  auto held = Mutex(client(), "r").acquire();
  const Mutex mutex(client(), "r");
  std::vector<int> served;  // one at a time: the lock is what orders it
  std::latch all(20);
  for (int i = 0; i < 20; ++i) {
    mutex.acquire(Wait::forever(), [&, i](Attempt result) {
      ASSERT_TRUE(result);
      served.push_back(i);
      result->release();
      all.count_down();
    });
  }
  EXPECT_TRUE(eventually([&] { return waiters("r") == 20; }));
  held.release();
  all.wait();
  EXPECT_TRUE(std::is_sorted(served.begin(), served.end())) << testing::PrintToString(served);
}

TEST_P(Async, AThousandWaitersCanBeCancelledAtOnce) {
  COVERS(Rule<9>);
  const int waiters_in_all = GetParam().name == "memory" ? 1000 : 100;
  const Mutex mutex(client(), "r");
  const auto held = mutex.acquire();
  std::stop_source stop;
  std::atomic<int> cancelled = 0;
  std::latch all(waiters_in_all);
  for (int i = 0; i < waiters_in_all; ++i) {
    mutex.acquire(Wait::forever(stop.get_token()), [&](const Attempt& result) {
      if (result.outcome() == Outcome::cancelled) ++cancelled;
      all.count_down();
    });
  }
  stop.request_stop();
  all.wait();
  EXPECT_EQ(cancelled, waiters_in_all);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
}

TEST_P(Async, AReleaseNeedsNoThreadEither) {
  COVERS(Rule<8>);
  const auto locks = client();
  auto lease = Mutex(locks, "r").acquire();
  std::promise<LeaseState> first;
  lease.async_release([&](LeaseState state) { first.set_value(state); });
  EXPECT_EQ(first.get_future().get(), LeaseState::released);
  EXPECT_EQ(lease.state(), LeaseState::released);
  EXPECT_EQ(holders("r"), 0U);
  std::promise<LeaseState> second;
  lease.async_release([&](LeaseState state) { second.set_value(state); });
  EXPECT_EQ(second.get_future().get(), LeaseState::released) << "releasing twice is fine";

  auto taken = Mutex(locks, "r", {.ttl = 30s, .renew = false}).acquire();
  store().break_hold("r");
  std::promise<LeaseState> third;
  taken.async_release([&](LeaseState state) { third.set_value(state); });
  EXPECT_EQ(third.get_future().get(), LeaseState::lost);
}

}  // namespace
}  // namespace interlock::conformance
