// Processes that are killed and stopped at a bad moment. Each test says what has to come of it.
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

using ClientFaults = RedisTest;

// Killed while it holds. Expected: the TTL ends it, and the next one gets it then, not much later.
TEST_F(ClientFaults, KilledWhileHoldingTheTtlEndsIt) {
  auto first = holder("r", "2s");
  const auto fence = first.fence();
  auto next = queued_holder("r");
  first.kill();
  const auto start = BootClock::now();
  EXPECT_GT(next.fence(), fence);
  EXPECT_LT(BootClock::now() - start, 2s + kAboutASecond);
}

// Killed while it waits. Expected: the next in line gets it within about a second of the release,
// though the dead one was ahead of it.
TEST_F(ClientFaults, KilledWhileQueuedItsSuccessorIsServed) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  auto killed = queued_holder("r");
  auto next = queued_holder("r");
  killed.kill();
  const auto start = BootClock::now();
  lease.release();
  EXPECT_GT(next.fence(), 0U);
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// Five of them. Expected: the same, not five times as long.
TEST_F(ClientFaults, ManyKilledWhileQueuedCostNoMoreThanOne) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  std::vector<Child> killed;
  for (int i = 0; i < 5; ++i) killed.push_back(queued_holder("r"));
  auto next = queued_holder("r");
  for (auto& child : killed) child.kill();
  const auto start = BootClock::now();
  lease.release();
  EXPECT_GT(next.fence(), 0U);
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// Killed exactly when it was told that it is its turn: it stands still, the server hands it the
// lock, and it never wakes. Expected: the next one has it within about a second, not after a TTL of
// ten minutes.
TEST_F(ClientFaults, KilledWhenItWasHandedTheLockItsSuccessorIsServed) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  auto killed = queued_holder("r");
  auto next = queued_holder("r");
  killed.signal(SIGSTOP);
  const auto start = BootClock::now();
  lease.release();
  killed.kill();
  EXPECT_GT(next.fence(), 0U);
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// The same, and it is the only one in line: whoever comes afterwards is not held up either.
TEST_F(ClientFaults, KilledWhenItWasHandedTheLockALaterOneIsServed) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  auto killed = queued_holder("r");
  killed.signal(SIGSTOP);
  lease.release();
  killed.kill();
  const auto start = BootClock::now();
  EXPECT_TRUE(Mutex(onlooker(), "r").try_acquire_for(kPatience));
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// A reader that is handed the lock and never takes it. Expected: those behind it get in.
TEST_F(ClientFaults, AKilledReaderDoesNotHoldUpAWriter) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  const auto heard = listeners();
  Child killed("holder", {url(), "r", "600s", "shared"});
  ASSERT_TRUE(eventually([&] { return waiters("r") == 1 && listeners() > heard; }));
  auto next = queued_holder("r");
  killed.signal(SIGSTOP);
  const auto start = BootClock::now();
  lease.release();
  killed.kill();
  EXPECT_GT(next.fence(), 0U);
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// Stopped for longer than its TTL, and woken. Expected: the first thing that it can see is that the
// lease is lost; it can't release its successor's.
TEST_F(ClientFaults, StoppedPastItsTtlItSeesTheLossFirst) {
  auto stopped = holder("r", "1s");
  const auto fence = stopped.fence();
  stopped.signal(SIGSTOP);
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  EXPECT_GT(lease.fence().value, fence) << "whatever it still writes can be refused";
  stopped.tell("state");
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.after("state "), "lost");
  EXPECT_EQ(stopped.ask("release", "release "), "lost");
  EXPECT_TRUE(lease.extend(600s)) << "not the stopped one's to release";
}

// Stopped while it waits. Expected: it holds up nobody, and is served when it comes back.
TEST_F(ClientFaults, StoppedWhileQueuedItIsServedAfterAll) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  auto stopped = queued_holder("r");
  auto next = queued_holder("r");
  stopped.signal(SIGSTOP);
  lease.release();
  EXPECT_GT(next.fence(), 0U);
  stopped.signal(SIGCONT);
  EXPECT_EQ(next.ask("release", "release "), "released");
  EXPECT_GT(stopped.fence(), 0U);
}

// Killed in the middle of everything. Expected: when the TTLs have ended, nothing is left but the
// counter behind the fences, with nobody to clean up.
TEST_F(ClientFaults, TheKilledLeaveNothingBehind) {
  auto first = holder("a/b", "1s");
  EXPECT_GT(first.fence(), 0U);
  Child reader("holder", {url(), "rw", "1s", "shared"});
  EXPECT_GT(reader.fence(), 0U);
  auto queued = queued_holder("a/b", "1s");
  auto writer = queued_holder("rw", "1s");
  for (auto* child : {&first, &reader, &queued, &writer}) child->kill();
  EXPECT_TRUE(eventually([&] { return keys() == kOnlyTheFence; })) << keys();
}

// Killed while it waits for a lock that is freed then. Expected: once its place is given up, the name is
// free for any kind of lock.
TEST_F(ClientFaults, AKilledWaiterDoesNotDecideWhatTheNameIsUsedFor) {
  auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  auto killed = queued_holder("r");
  killed.kill();
  lease.release();
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
  EXPECT_TRUE(Semaphore(onlooker(), "r", 2).try_acquire());
}

// A waiter whose client makes other calls all the time. Expected: it is woken all the same, and does not
// have to find out by itself, which takes half a second or more.
TEST_F(ClientFaults, AWaiterOfABusyClientIsWoken) {
  constexpr int kRounds = 20;
  const auto busy = connect(url());
  std::jthread calls([mutex = Mutex(busy, "other")](const std::stop_token& stop) {
    while (!stop.stop_requested()) auto lease = mutex.acquire();
  });
  const auto begin = BootClock::now();
  for (int i = 0; i < kRounds; ++i) {
    auto lease = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
    std::promise<Attempt> granted;
    auto next = granted.get_future();
    Mutex(busy, "r", {.ttl = 600s}).acquire({}, [&](Attempt attempt) {
      granted.set_value(std::move(attempt));
    });
    EXPECT_TRUE(eventually([&] { return waiters("r") == 1; }));
    lease.release();
    EXPECT_TRUE(next.get());
  }
  EXPECT_LT(BootClock::now() - begin, kRounds * 250ms);
}

}  // namespace
}  // namespace interlock::redis_tests
