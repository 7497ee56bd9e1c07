// Rule 2: a claim on several resources is granted whole, or not at all. Row 0.10: in whatever order.
#include <algorithm>
#include <atomic>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Sets);

TEST_P(Sets, AllAreHeldByOneOwnerWithOneLabel) {
  COVERS(Rule<2>, Case<23>);
  const auto lease = MultiLock(client(), {"r3", "r1", "r2"}, {.label = "nightly"}).acquire();
  EXPECT_EQ(lease.resources(), (std::vector<std::string>{"r1", "r2", "r3"}));
  EXPECT_EQ(lease.who().label, "nightly");
  for (const auto* name : {"r1", "r2", "r3"}) {
    const auto state = look(name);
    ASSERT_EQ(state.holders.size(), 1U) << name;
    EXPECT_EQ(state.holders[0].owner, lease.owner());
    EXPECT_EQ(state.holders[0].who.label, "nightly");
  }
}

TEST_P(Sets, ASetThatIsNotFreeAsAWholeTakesNothing) {
  COVERS(Rule<2>);
  const auto locks = client();
  const auto held = Mutex(locks, "b").acquire();
  EXPECT_EQ(MultiLock(locks, {"a", "b", "c"}).try_acquire().outcome(), Outcome::busy);
  EXPECT_EQ(holders("a"), 0U);
  EXPECT_EQ(holders("c"), 0U);
  EXPECT_TRUE(Mutex(locks, "a").try_acquire());
}

TEST_P(Sets, ASetThatWaitsHoldsNothing) {
  COVERS(Rule<2>);
  const auto locks = client();
  auto held = Mutex(locks, "b").acquire();
  auto waiting = queue_up(MultiLock(locks, {"b", "a", "c"}));
  if (locks.traits().atomic_claims) {
    EXPECT_EQ(holders("a"), 0U);
    EXPECT_EQ(holders("c"), 0U);
  }
  held.release();
  const auto lease = waiting.lease();
  EXPECT_EQ(holders("a") + holders("b") + holders("c"), 3U);
}

TEST_P(Sets, ASetIsNotStarvedByItsParts) {
  COVERS(Rule<2>, Rule<3>);
  const auto locks = client();
  auto a = Mutex(locks, "a").acquire();
  auto set = queue_up(MultiLock(locks, {"a", "b"}));
  // Taken one after the other, a set may stand in the first queue only.
  if (!locks.traits().atomic_claims) return;
  EXPECT_FALSE(Mutex(locks, "b").try_acquire()) << "it would overtake the set";
  auto late = queue_up(Mutex(locks, "b"));
  a.release();
  auto lease = set.lease();
  EXPECT_FALSE(late.over());
  lease.release();
  EXPECT_TRUE(late.lease());
}

// Who holds something and asks for more waits behind a set that waits for it: a bounded wait ends that,
// and says what was in the way.
TEST_P(Sets, ASetThatWaitsKeepsItsPlaceInTheLineOfWhatIsFree) {
  COVERS(Rule<2>, Rule<3>);
  const auto locks = client();
  if (!locks.traits().atomic_claims || !locks.traits().queues)
    GTEST_SKIP() << "one after the other";
  auto a = Mutex(locks, "a").acquire();
  auto both = queue_up(MultiLock(client(), {"a", "b"}));
  EXPECT_EQ(holders("b"), 0U);
  const auto late = Mutex(locks, "b").try_acquire_for(500ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.outcome(), Outcome::timed_out);
  EXPECT_NE(late.error().message().find("1 other was still ahead in the queue"), std::string::npos)
      << late.error().what();
  a.release();
  EXPECT_TRUE(both.lease());
}

TEST_P(Sets, DisjointSetsNeverBlockEachOther) {
  COVERS(Rule<2>, Case<26>);
  const auto locks = client();
  const auto first = MultiLock(locks, {"a", "b"}).acquire();
  auto waiting = queue_up(MultiLock(locks, {"b", "c"}));
  EXPECT_TRUE(MultiLock(client(), {"d", "e"}).try_acquire());
  waiting.cancel();
  EXPECT_FALSE(waiting.attempt());
}

TEST_P(Sets, ANameGivenTwiceIsOneName) {
  COVERS(Rule<2>);
  const auto locks = client();
  auto lease = MultiLock(locks, {"a", "b", "a"}).acquire();
  EXPECT_EQ(lease.resources(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(holders("a"), 1U);
  lease.release();
  const auto strongest = MultiLock(locks, {shared("a"), exclusive("a")}).acquire();
  EXPECT_EQ(look("a").holders.at(0).mode, Mode::exclusive);
}

TEST_P(Sets, PartialReleaseKeepsTheRest) {
  COVERS(Rule<2>, Case<25>);
  const auto locks = client();
  auto lease = MultiLock(locks, {"r1", "r2", "r3"}, {.ttl = 1s}).acquire();
  const auto fence = lease.fence("r2");
  lease.release({"r1", "r3"});
  EXPECT_EQ(lease.resources(), std::vector<std::string>{"r2"});
  EXPECT_EQ(lease.fence("r2"), fence);
  EXPECT_TRUE(Mutex(locks, "r1").try_acquire());
  EXPECT_TRUE(Mutex(locks, "r3").try_acquire());
  const auto valid = lease.valid_until();
  EXPECT_TRUE(eventually([&] { return lease.valid_until() > valid || !lease; })) << "renews on";
  EXPECT_TRUE(lease);
  EXPECT_FALSE(Mutex(locks, "r2").try_acquire());
  EXPECT_EQ(lease.release({"r2"}), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Sets, PartialReleaseWakesWhoWaitsForThatPart) {
  COVERS(Rule<2>, Rule<4>);
  const auto locks = client();
  auto lease = MultiLock(locks, {"a", "b"}).acquire();
  auto for_a = queue_up(Mutex(locks, "a"));
  auto for_b = queue_up(Mutex(locks, "b"));
  lease.release({"b"});
  EXPECT_TRUE(for_b.lease());
  EXPECT_FALSE(for_a.over());
  lease.release();
  EXPECT_TRUE(for_a.lease());
}

TEST_P(Sets, ReleasingWhatAnotherHoldsLeavesItThere) {
  COVERS(Rule<2>, Rule<8>, Case<24>);
  const auto locks = client();
  auto mine = Mutex(locks, "r1").acquire();
  const auto theirs = Mutex(client(), "r2").acquire();
  EXPECT_NO_THROW(mine.release({"r1", "r2"}));
  EXPECT_EQ(holders("r1"), 0U);
  EXPECT_EQ(look("r2").holders.at(0).owner, theirs.owner());
}

// One of two is taken away, and another holds it. Expected: the set was lost, whoever says so first, and
// nothing of it stays behind.
TEST_P(Sets, ASetThatLostAPartIsNotReleasedButLost) {
  COVERS(Rule<8>);
  const auto holder = client();
  auto set = MultiLock(holder, {"a", "b"}, {.ttl = 60s}).acquire();
  EXPECT_TRUE(client().evict("a", set.owner()));
  const auto next = Mutex(client(), "a").acquire();
  EXPECT_EQ(set.release(), LeaseState::lost);
  EXPECT_TRUE(eventually([&] { return look("b").holders.empty(); }));
  EXPECT_EQ(look("a").holders.at(0).owner, next.owner());
}

TEST_P(Sets, ModesCanBeMixed) {
  COVERS(Rule<2>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const auto locks = client();
  const MultiLock mixed(locks, {exclusive("report"), shared("config"), slots("workers", 2, 3)});
  const auto lease = mixed.acquire();
  EXPECT_TRUE(RwLock(locks, "config").try_read());
  EXPECT_FALSE(RwLock(locks, "config").try_write());
  EXPECT_FALSE(Mutex(locks, "report").try_acquire());
  const auto last_slot = Semaphore(locks, "workers", 3).try_acquire();
  EXPECT_TRUE(last_slot);
  EXPECT_FALSE(Semaphore(locks, "workers", 3).try_acquire());
}

// Row 0.10.
TEST_P(Sets, OverlappingSetsInAnyOrderNeverDeadlock) {
  COVERS(Rule<2>, Rule<1>);
  const std::vector<std::vector<std::string>> sets{
      {"a", "b"}, {"b", "a"}, {"b", "c"}, {"c", "a"}, {"c", "b", "a"}};
  std::array<std::atomic<int>, 3> inside{};
  std::vector<std::jthread> workers;
  for (const auto& names : sets) {
    workers.emplace_back([&, locks = client()] {
      const MultiLock lock(locks, names);
      for (int i = 0; i < 10; ++i) {
        const auto lease = lock.acquire();
        for (const auto& name : names)
          EXPECT_EQ(++inside.at(static_cast<std::size_t>(name[0] - 'a')), 1);
        std::this_thread::yield();
        for (const auto& name : names) --inside.at(static_cast<std::size_t>(name[0] - 'a'));
      }
    });
  }
  workers.clear();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::conformance
