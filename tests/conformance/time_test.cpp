// Rule 6: validity is counted from before the request left, and the store's clock ends what nobody
// renews. And the bounds of a wait.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Time);

// Rows 2.1 and 2.5: it counts its attempts.
TEST_P(Time, ABoundedWaiterGetsWhatIsFreedInTime) {
  COVERS(Rule<6>, Case<2>);
  const auto a = client();
  const auto b = client();
  auto held = Mutex(a, "r").acquire();
  auto waiting = queue_up(Mutex(b, "r"), kPatience);
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(waiting.over());
  held.release();
  const auto lease = waiting.lease();
  EXPECT_TRUE(lease);
  EXPECT_GE(lease.waited(), 200ms);
  EXPECT_GE(lease.attempts(), 2);
}

// Row 2.4.
TEST_P(Time, ABoundedWaitEndsAndSaysHowLongItWas) {
  COVERS(Rule<6>, Rule<10>, Case<3>);
  const auto a = client();
  const auto b = client();
  const auto held = Mutex(a, "r").acquire();
  const auto start = BootClock::now();
  const auto attempt = Mutex(b, "r").try_acquire_for(100ms);
  EXPECT_GE(BootClock::now() - start, 100ms);
  EXPECT_EQ(attempt.outcome(), Outcome::timed_out);
  EXPECT_GE(attempt.waited(), 100ms);
  EXPECT_EQ(attempt.error().errc(), Errc::timed_out);
}

// Row 2.2.
TEST_P(Time, MaxWaitBoundsAcquire) {
  COVERS(Rule<6>);
  const auto locks = client();
  const auto held = Mutex(locks, "r").acquire();
  try {
    static_cast<void>(Mutex(locks, "r", {.max_wait = 100ms}).acquire());
    FAIL() << "nobody released it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::timed_out);
    EXPECT_EQ(error.resource(), "r");
  }
}

// Rows 2.1 and 2.4.
TEST_P(Time, SoManyRetriesAreSoManyAttempts) {
  COVERS(Rule<10>, Case<4>);
  const auto a = client();
  const auto b = client();
  const auto held = Mutex(a, "r").acquire();
  const auto attempt = Mutex(b, "r").try_acquire_times({.attempts = 4, .first = 1ms, .max = 2ms});
  EXPECT_EQ(attempt.outcome(), Outcome::exhausted);
  EXPECT_EQ(attempt.error().errc(), Errc::exhausted);
  EXPECT_EQ(attempt.attempts(), 4);
  EXPECT_EQ(waiters("r"), 0U);
}

TEST_P(Time, RetriesGetWhatIsFreedBetweenThem) {
  COVERS(Rule<10>);
  const auto locks = client();
  auto held = Mutex(locks, "r").acquire();
  auto trying = std::async(std::launch::async, [&] {
    return Mutex(locks, "r").try_acquire_times({.attempts = 100000, .first = 1ms, .max = 5ms});
  });
  std::this_thread::sleep_for(100ms);
  held.release();
  EXPECT_TRUE(trying.get());
}

// Rows 1.3 and 3.3.
TEST_P(Time, ALeaseNobodyRenewsIsFreeAfterItsTtlAndNotBefore) {
  COVERS(Rule<6>, Case<8>, Case<28>);
  Seam seam(store().open());
  const Mutex contender(client(), "r");
  const auto start = BootClock::now();
  ASSERT_EQ(seam.acquire(claim_of("r", 300ms)).verdict, Verdict::granted);
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(contender.try_acquire()); }));
  EXPECT_GE(BootClock::now() - start, 300ms);
}

TEST_P(Time, AnExpiredHolderIsNotShown) {
  COVERS(Rule<6>, Case<28>);
  Seam seam(store().open());
  ASSERT_EQ(seam.acquire(claim_of("r", 100ms)).verdict, Verdict::granted);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

// Rows 0.12, 2.6 and 4.6.
TEST_P(Time, ARenewedLeaseKeepsAContenderOutThroughout) {
  COVERS(Rule<6>, Case<9>);
  const auto a = client();
  const Mutex contender(client(), "r");
  // A machine that stands still for longer than the TTL loses the lease, and has to know it. Then the same
  // with twice the time. Without renewal, no length of time will do.
  const auto is_kept = [&](Duration ttl, Duration hold) {
    const auto lease = Mutex(a, "r", {.ttl = ttl}).acquire();
    const auto until = BootClock::now() + hold;
    while (BootClock::now() < until) {
      if (contender.try_acquire()) {
        EXPECT_EQ(lease.state(), LeaseState::lost);
        return false;
      }
      std::this_thread::sleep_for(ttl / 10);
    }
    return static_cast<bool>(lease);
  };
  bool kept = false;
  for (int times = 1; times <= 64 && !kept; times *= 2)
    kept = is_kept(times * 150ms, times * 400ms);
  EXPECT_TRUE(kept) << "it was never renewed";
}

TEST_P(Time, ARenewalMovesTheExpiry) {
  COVERS(Rule<6>, Case<30>);
  const auto lease = Mutex(client(), "r", {.ttl = 1s}).acquire();
  const auto first = lease.valid_until();
  EXPECT_TRUE(eventually([&] { return lease.valid_until() > first || !lease; }));
  EXPECT_GT(lease.time_remaining(), 0s);
}

// Rows 0.1 and 0.2: its own times follow.
TEST_P(Time, AnExtendedLeaseOutlivesItsFirstTtl) {
  COVERS(Rule<6>, Case<35>);
  const Mutex contender(client(), "r");
  auto lease = Mutex(client(), "r", {.ttl = 1s, .renew = false}).acquire();
  const auto first = lease.valid_until();
  ASSERT_TRUE(lease.extend(20s));
  EXPECT_EQ(lease.ttl(), 20s);
  EXPECT_GT(lease.valid_until(), first + 10s);
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + (first - BootClock::now()) +
                                300ms);
  EXPECT_TRUE(lease);
  EXPECT_FALSE(contender.try_acquire());
}

TEST_P(Time, AShorterTtlTakesNothingAwayThatWasGiven) {
  COVERS(Rule<6>);
  auto lease = Mutex(client(), "r", {.ttl = 20s}).acquire();
  const auto given = lease.valid_until();
  ASSERT_TRUE(lease.extend(2s));
  EXPECT_EQ(lease.ttl(), 2s);
  EXPECT_GE(lease.valid_until(), given);
  EXPECT_GT(look("r").holders.at(0).remaining, 10s);
}

TEST_P(Time, ValidityIsCountedFromBeforeTheRequestLeft) {
  COVERS(Rule<6>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire, kPatience));
  const auto drift = locks.traits().drift(30s);
  EXPECT_GT(drift, 0s);
  wire->set(Kind::acquire, Fate::hold);
  const auto start = BootClock::now();
  Waiting waiting(Mutex(locks, "r"));
  ASSERT_TRUE(eventually([&] { return wire->held_back() == 1; }));
  std::this_thread::sleep_for(200ms);
  wire->deliver();
  const auto lease = waiting.lease();
  EXPECT_LE(lease.valid_until(), wire->last(Kind::acquire) + 30s - drift);
  EXPECT_GE(lease.valid_until(), start + 30s - drift);
}

TEST_P(Time, AnAcquireThatTookLongerThanItsLeaseIsNoSuccess) {
  COVERS(Rule<6>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire, kPatience));
  wire->once(Kind::acquire, Fate::hold);
  Waiting waiting(Mutex(locks, "r", {.ttl = 400ms}));
  ASSERT_TRUE(eventually([&] { return wire->held_back() == 1; }));
  std::this_thread::sleep_for(500ms);
  const auto late = BootClock::now();
  wire->deliver();
  auto attempt = waiting.attempt();
  if (attempt) {
    EXPECT_GT(attempt->valid_until(), late) << "dead on arrival";
  }
}

// Row 0.2.
TEST_P(Time, RemainingTimeIsNeverNegative) {
  COVERS(Rule<6>);
  const auto lease = Mutex(client(), "r", {.ttl = 200ms, .renew = false}).acquire();
  EXPECT_LE(lease.time_remaining(), 200ms);
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::lost; }));
  EXPECT_EQ(lease.time_remaining(), 0s);
}

}  // namespace
}  // namespace interlock::conformance
