// Rule 3: first come, first served; priority first where one is given. Row 0.12 begins here: renewal is in
// time_test.cpp, semaphores and readers have files of their own, Redlock is a store.
#include <mutex>

#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Order);

TEST_P(Order, WaitersAreServedInOrderOfArrival) {
  COVERS(Rule<3>);
  const std::vector<Client> clients{client(), client(), client()};
  auto first = Mutex(clients[0], "r").acquire();
  std::vector<Waiting> line;
  for (std::size_t i = 0; i < 6; ++i) {
    line.push_back(queue_up(Mutex(clients[i % clients.size()], "r")));
  }
  first.release();
  for (auto& next : line) {
    const auto lease = next.lease();
    for (auto* later = &next + 1; later != line.data() + line.size(); ++later) {
      EXPECT_FALSE(later->over());
    }
  }
}

TEST_P(Order, AWaiterSeesItsPlace) {
  COVERS(Rule<3>);
  Seam seam(store().open());
  const auto holder = claim_of("r");
  const auto second = claim_of("r");
  const auto third = claim_of("r");
  seam.acquire(holder);
  EXPECT_EQ(seam.acquire(second).place, 0U);
  EXPECT_EQ(seam.acquire(third).place, 1U);
  seam.release(second);
  EXPECT_EQ(seam.acquire(third).place, 0U);
}

// Row 0.12.
TEST_P(Order, HigherPriorityIsServedFirstAndEqualOnesByArrival) {
  COVERS(Rule<3>);
  const auto locks = client();
  auto first = Mutex(locks, "r").acquire();
  auto low = queue_up(Mutex(locks, "r", {.priority = -1}));
  auto normal = queue_up(Mutex(locks, "r"));
  auto high = queue_up(Mutex(locks, "r", {.priority = 7}));
  auto high_later = queue_up(Mutex(locks, "r", {.priority = 7}));
  const auto state = look("r");
  ASSERT_EQ(state.waiters.size(), 4U);
  EXPECT_EQ(state.waiters[0].priority, 7);
  EXPECT_EQ(state.waiters[3].priority, -1);

  first.release();
  auto lease = high.lease();
  EXPECT_FALSE(high_later.over());
  lease.release();
  lease = high_later.lease();
  EXPECT_FALSE(normal.over());
  lease.release();
  lease = normal.lease();
  EXPECT_FALSE(low.over());
  lease.release();
  EXPECT_TRUE(low.lease());
}

TEST_P(Order, ATryNeverOvertakesAWaiter) {
  COVERS(Rule<3>);
  Seam seam(store().open());
  const auto holder = claim_of("r");
  const auto waiter = claim_of("r");
  ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(waiter).verdict, Verdict::queued);
  seam.release(holder);  // free, and the waiter has not asked again yet
  EXPECT_EQ(seam.try_acquire(claim_of("r")).verdict, Verdict::busy);
  EXPECT_EQ(Mutex(client(), "r").try_acquire().outcome(), Outcome::busy);
  EXPECT_EQ(seam.acquire(waiter).verdict, Verdict::granted);
}

TEST_P(Order, AFailedTryLeavesNoTraceAndDelaysNobody) {
  COVERS(Rule<3>);
  const auto a = client();
  const auto b = client();
  auto lease = Mutex(a, "r").acquire();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Mutex(b, "r").try_acquire());
  EXPECT_FALSE(Mutex(b, "r").try_acquire_times({.attempts = 2, .first = 1ms}));
  const auto state = look("r");
  EXPECT_EQ(state.holders.size(), 1U);
  EXPECT_TRUE(state.waiters.empty());
  lease.release();
  EXPECT_TRUE(Mutex(a, "r").try_acquire());
}

TEST_P(Order, AWaiterThatGivesUpLosesItsPlace) {
  COVERS(Rule<3>, Rule<9>);
  const auto a = client();
  const auto b = client();
  auto holder = Mutex(a, "r").acquire();
  const auto late = Mutex(b, "r").try_acquire_for(100ms);
  EXPECT_EQ(late.outcome(), Outcome::timed_out);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
  holder.release();
  EXPECT_TRUE(Mutex(a, "r").try_acquire());
}

TEST_P(Order, ACancelledWaiterLosesItsPlaceAndTheNextOneMovesUp) {
  COVERS(Rule<3>, Rule<9>);
  const auto locks = client();
  auto holder = Mutex(locks, "r").acquire();
  auto cancelled = queue_up(Mutex(locks, "r"));
  auto next = queue_up(Mutex(locks, "r"));
  cancelled.cancel();
  EXPECT_EQ(cancelled.attempt().outcome(), Outcome::cancelled);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1; }));
  holder.release();
  EXPECT_TRUE(next.lease());
}

TEST_P(Order, ASilentWaiterIsForgotten) {
  COVERS(Rule<3>, Rule<4>, Case<20>);
  // Its process died, say: no heartbeat comes any more, and nobody says goodbye.
  if (!client().traits().across_processes) {
    GTEST_SKIP() << "waiters end with the store's own process: none falls silent";
  }
  Seam seam(store().open());
  const auto reader = claim_of({shared("r")});
  const auto silent_writer = claim_of("r");
  ASSERT_EQ(seam.acquire(reader).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(silent_writer).verdict, Verdict::queued);
  const RwLock lock(client(), "r");
  EXPECT_FALSE(lock.try_read());
  const auto waiting_reader = lock.try_read_for(kPatience);
  EXPECT_TRUE(waiting_reader);
}

TEST_P(Order, AHeartbeatKeepsThePlace) {
  COVERS(Rule<3>);
  Seam seam(store().open());
  const auto holder = claim_of("r");
  const auto early = claim_of("r");
  const auto late = claim_of("r");
  ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(early).verdict, Verdict::queued);
  ASSERT_EQ(seam.acquire(late).verdict, Verdict::queued);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(seam.acquire(late).place, 1U);
    EXPECT_EQ(seam.acquire(early).place, 0U);
  }
  EXPECT_EQ(waiters("r"), 2U);
  seam.release(holder);
  EXPECT_EQ(seam.acquire(late).verdict, Verdict::queued);
  EXPECT_EQ(seam.acquire(early).verdict, Verdict::granted);
}

TEST_P(Order, ALongWaitIsNotForgotten) {
  COVERS(Rule<3>, Rule<4>);
  // Longer than a silent waiter's place lasts: the core's heartbeat has to keep it.
  if (!client().traits().across_processes) {
    GTEST_SKIP() << "waiters end with the store's own process: none falls silent";
  }
  const auto a = client();
  const auto b = client();
  auto holder = Mutex(a, "r").acquire();
  auto early = queue_up(Mutex(b, "r"));
  const auto ticket = look("r").waiters.at(0).owner;
  std::this_thread::sleep_for(4 * a.traits().heartbeat);
  auto late = queue_up(Mutex(a, "r"));
  EXPECT_EQ(look("r").waiters.at(0).owner, ticket);
  holder.release();
  EXPECT_EQ(early.lease().owner(), ticket);
  EXPECT_TRUE(late.lease());
}

}  // namespace
}  // namespace interlock::conformance
