// Rule 7: loss is told, in time, and with no network needed.
#include <atomic>

#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Loss);

// Row 2.5.
TEST_P(Loss, DeletedBehindOurBackIsNoticedByTheNextRenewal) {
  COVERS(Rule<7>, Case<10>);
  // A third of the TTL, and as much again of half for the way there and back, on a machine that may be
  // slow: then the same with twice the time. Its own end comes after all of the TTL.
  const auto is_noticed_in_time = [&](Duration ttl) {
    auto lease = Mutex(client(), "r", {.ttl = ttl}).acquire();
    const auto lost = lease.lost();
    store().break_hold("r");
    const auto broken = BootClock::now();
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    const auto took = BootClock::now() - broken;
    EXPECT_EQ(lease.state(), LeaseState::lost);
    EXPECT_FALSE(lease.lost_reason().empty());
    EXPECT_EQ(lease.release(), LeaseState::lost);
    EXPECT_FALSE(lease.extend(10s));
    return took <= ttl / 2;
  };
  bool in_time = false;
  for (Duration ttl = 1500ms; ttl < kPatience / 2 && !in_time; ttl *= 2)
    in_time = is_noticed_in_time(ttl);
  EXPECT_TRUE(in_time) << "only the end of the TTL told";
}

TEST_P(Loss, ReleaseSaysLostIfItWasNotOursAnyMore) {
  COVERS(Rule<7>, Rule<8>, Case<10>);
  auto lease = Mutex(client(), "r").acquire();  // no renewal comes within the test
  store().break_hold("r");
  EXPECT_EQ(lease.release(), LeaseState::lost);
}

TEST_P(Loss, AnEvictedHolderLeavesTheResourceToTheNext) {
  COVERS(Rule<7>, Rule<8>);
  const auto a = client();
  auto evicted = Mutex(a, "r", {.ttl = 2s}).acquire();
  auto waiting = queue_up(Mutex(client(), "r"));
  EXPECT_TRUE(client().evict("r", evicted.owner()));
  const auto next = waiting.lease();
  EXPECT_TRUE(next);
  EXPECT_TRUE(eventually([&] { return evicted.lost().stop_requested(); }));
  evicted.release();
  EXPECT_EQ(look("r").holders.at(0).owner, next.owner()) << "not the evicted one's to release";
  EXPECT_FALSE(client().evict("r", evicted.owner())) << "has nothing there any more";
}

TEST_P(Loss, AHolderThatItsOwnClientEvictsIsToldWithoutARenewal) {
  COVERS(Rule<7>);
  const auto locks = client();
  const auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();  // renewed after minutes
  EXPECT_TRUE(locks.evict("r", lease.owner()));
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
}

TEST_P(Loss, APartitionedHolderIsToldByItsOwnClock) {
  COVERS(Rule<7>);
  for (const auto fate : {Fate::fail, Fate::silence}) {
    const auto wire = std::make_shared<Wire>();
    const Client cut_off(std::make_unique<Wired>(store().open(), wire), {.release_timeout = 100ms});
    const auto contender = client();
    const auto lease = Mutex(cut_off, "r", {.ttl = 800ms}).acquire();
    std::atomic<bool> told = false;
    const std::stop_callback callback(lease.lost(), [&] { told = true; });
    wire->set_all(fate);
    const auto next = Mutex(contender, "r").acquire();
    // By the clock, whoever asks; the callback may be on its way still.
    EXPECT_EQ(lease.state(), LeaseState::lost);
    EXPECT_TRUE(eventually([&] { return told.load(); }));
    EXPECT_EQ(lease.time_remaining(), 0s);
  }
}

// Row 2.5.
TEST_P(Loss, ANormalReleaseNeverFiresIt) {
  COVERS(Rule<7>);
  auto lease = Mutex(client(), "r").acquire();
  const auto lost = lease.lost();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(lease.state(), LeaseState::released);
  EXPECT_TRUE(lease.lost_reason().empty());
  std::stop_token dropped;
  {
    const auto other = Mutex(client(), "r").acquire();
    dropped = other.lost();
  }
  EXPECT_FALSE(dropped.stop_requested());
}

TEST_P(Loss, ARenewalThatSucceedsInTimeIsNoLoss) {
  COVERS(Rule<7>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire));
  auto lease = Mutex(locks, "r", {.ttl = 3s}).acquire();
  const auto first = lease.valid_until();
  wire->set(Kind::renew, Fate::fail);
  ASSERT_TRUE(eventually([&] { return wire->calls(Kind::renew) >= 1; }));
  wire->set(Kind::renew, Fate::pass);
  EXPECT_TRUE(eventually([&] { return lease.valid_until() > first || !lease; }));
  EXPECT_TRUE(lease);
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_EQ(lease.release(), LeaseState::released);
}

TEST_P(Loss, AfterALossThereIsNoWayBack) {
  COVERS(Rule<7>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire));
  auto lease = Mutex(locks, "r", {.ttl = 500ms}).acquire();
  wire->set_all(Fate::fail);
  ASSERT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  wire->set_all(Fate::pass);
  EXPECT_FALSE(lease.extend(10s));
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Loss, IsToldBeforeAnotherCanHaveIt) {
  COVERS(Rule<7>, Rule<6>);
  // The holder's own validity ends before the store's TTL does.
  const auto contender = client();
  for (int round = 0; round < 3; ++round) {
    const auto lease = Mutex(client(), "r", {.ttl = 200ms, .renew = false}).acquire();
    const auto next = Mutex(contender, "r").acquire();
    EXPECT_EQ(lease.state(), LeaseState::lost);
    EXPECT_LT(lease.valid_until(), BootClock::now());
  }
}

TEST_P(Loss, AHolderThatHangsIsEndedByMaxHold) {
  COVERS(Rule<7>);
  const auto start = BootClock::now();
  const auto hung = Mutex(client(), "r", {.ttl = 2s, .max_hold = 900ms}).acquire();
  const auto next = Mutex(client(), "r").acquire();
  EXPECT_TRUE(next);
  EXPECT_EQ(hung.state(), LeaseState::lost);
  EXPECT_GE(BootClock::now() - start, 900ms);
}

TEST_P(Loss, OfOnePartIsLossOfTheWhole) {
  COVERS(Rule<7>, Rule<2>);
  auto lease = MultiLock(client(), {"a", "b"}, {.ttl = 2s}).acquire();
  store().break_hold("b");
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::conformance
