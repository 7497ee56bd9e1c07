// Every duration that a user can give, at nothing, almost nothing, a year and without an end: it
// works, or is refused with words. Nothing overflows, nothing spins.
#include <gtest/gtest.h>

#include <array>

#include "conformance/wire.hpp"
#include "core/acquisition.hpp"
#include "core/lease_machine.hpp"
#include "eventually.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;
using namespace std::chrono_literals;
using testing_support::eventually;

namespace {

constexpr Duration kYear = 24h * 365;
constexpr std::array<Duration, 6> kAll = {
    0s, 1ns, 1s, kYear, Duration(100 * kYear), Duration::max()};

// False: refused, with words.
template <class Use>
bool works(Use use) {
  try {
    use();
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.errc() == Errc::invalid || error.errc() == Errc::invalid_ttl) << error.what();
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

struct LongDurations : testing::Test {
  MemoryStore store;
  Client locks{store.open()};
  Client others{store.open()};

  void cycle(const Options& options) {
    const Mutex mutex(locks, "r", options);
    auto lease = mutex.acquire();
    EXPECT_TRUE(lease);
    EXPECT_FALSE(Mutex(others, "r").try_acquire());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(Mutex(others, "r").try_acquire());
  }
};

TEST_F(LongDurations, InOptions) {
  for (const auto each : kAll) {
    SCOPED_TRACE(format_duration(each));
    const bool positive = each > Duration::zero();
    EXPECT_EQ(works([&] { cycle({.ttl = each}); }), each >= 1ms && each <= kYear);
    EXPECT_EQ(works([&] { cycle({.max_wait = each}); }), positive);
    // One that is over at once is a lease that is not renewed.
    EXPECT_EQ(works([&] { cycle({.max_hold = each}); }), positive);
    EXPECT_EQ(works([&] { cycle({.margin = each}); }), each <= 10s);
    EXPECT_TRUE(works([&] { cycle({.retry = {.first = each}}); }));
    EXPECT_TRUE(works([&] { cycle({.retry = {.max = each}}); }));
  }
}

TEST_F(LongDurations, InWaits) {
  auto held = Mutex(others, "r").acquire();
  for (const auto each : kAll) {
    SCOPED_TRACE(format_duration(each));
    std::stop_source stop;
    const std::jthread stopper([&] {
      (void)eventually([&] {
        const auto found = others.inspect({.resources = {"r"}}).resources;
        return each < 1s || found.at(0).waiters.size() == 1;
      });
      if (each >= 1s) stop.request_stop();
    });
    const auto attempt = Mutex(locks, "r").try_acquire_for(each, stop.get_token());
    const auto outcome = attempt.outcome();
    EXPECT_EQ(outcome, each == 0s  ? Outcome::busy
                       : each < 1s ? Outcome::timed_out
                                   : Outcome::cancelled);
  }
}

TEST_F(LongDurations, InExtend) {
  for (const auto each : kAll) {
    SCOPED_TRACE(format_duration(each));
    auto lease = Mutex(locks, "r").acquire();
    EXPECT_EQ(works([&] { EXPECT_TRUE(lease.extend(each)); }), each >= 1ms && each <= kYear);
    EXPECT_TRUE(lease);
  }
}

TEST_F(LongDurations, InTheTimeForARelease) {
  for (const auto each : {1s, std::chrono::seconds(100 * kYear / 1s)}) {
    const Client patient(store.open(), {.release_timeout = each});
    { const auto lease = Mutex(patient, "r").acquire(); }
    EXPECT_TRUE(Mutex(others, "r").try_acquire());
  }
  const Client endless(store.open(), {.release_timeout = Duration::max()});
  { const auto lease = Mutex(endless, "r").acquire(); }
  EXPECT_TRUE(Mutex(others, "r").try_acquire());
}

TEST_F(LongDurations, OfAnObserverOfElectionsDontSpin) {
  for (const auto each : {kYear, Duration(100 * kYear), Duration::max()}) {
    const auto wire = std::make_shared<conformance::Wire>();
    const Client watched(std::make_unique<conformance::Wired>(store.open(), wire, 5s));
    LeaderElection election(watched, "cluster", {.look_every = each});
    std::atomic<bool> told = false;
    election.observe([&](const std::optional<Leader>&) { told = true; });
    ASSERT_TRUE(eventually([&] { return told.load(); }));
    for (int i = 0; i < 500; ++i) cycle({});
    EXPECT_LT(wire->calls(conformance::Kind::inspect), 10);
  }
}

TEST_F(LongDurations, OfARetryAreNeverNegative) {
  for (const auto first : kAll) {
    for (const auto max : kAll) {
      for (const double multiplier : {0.0, 1.0, 2.0, 1e300}) {
        const Retry retry{.attempts = 1000, .first = first, .max = max, .multiplier = multiplier};
        for (const int failed : {1, 2, 60, 2000}) {
          EXPECT_GE(retry.delay(failed), 0s);
          EXPECT_LE(retry.delay(failed), std::max(max, first));
        }
      }
    }
  }
}

TEST_F(LongDurations, OfAHoldKeepItsRenewals) {
  for (const auto max_hold : {kYear, Duration(100 * kYear), Duration::max()}) {
    const TimePoint sent{1h};
    core::LeaseMachine lease({.ttl = 30s,
                              .drift = [](Duration) { return Duration(2ms); },
                              .max_hold = max_hold,
                              .call_timeout = Duration::max()},
                             sent, sent);
    const auto step = lease.tick(sent + 10s);
    EXPECT_TRUE(step.renew);
    EXPECT_EQ(step.call_deadline, lease.valid_until());
  }
}

TEST_F(LongDurations, OfAStoreAreTimesToCome) {
  const TimePoint now{1h};
  core::Acquisition asking({.ttl = 30s,
                            .drift = 2ms,
                            .retry = {.first = Duration::max(), .max = Duration::max()},
                            .heartbeat = Duration::max(),
                            .call_timeout = Duration::max()});
  auto step = asking.start(now);
  EXPECT_EQ(step.call_deadline, TimePoint::max());
  asking.reply(now, step.call, now, {.verdict = Verdict::queued});
  EXPECT_GT(asking.next_tick(), now + kYear);
  step = asking.wake(now);
  asking.reply(now, step.call, now, Answer::failed({Errc::unreachable, "cut off"}));
  EXPECT_GT(asking.next_tick(), now + 24h);
}

TEST(TimeToCome, HasAnEndAndNoWayAround) {
  EXPECT_EQ(later(TimePoint{1h}, 1s), TimePoint{1h} + 1s);
  EXPECT_EQ(later(TimePoint{1h}, -1s), TimePoint{1h} - 1s);
  EXPECT_EQ(later(TimePoint{1h}, Duration::max()), TimePoint::max());
  EXPECT_EQ(later(TimePoint::max(), 1ns), TimePoint::max());
  EXPECT_EQ(format_duration(Duration::min()).front(), '-');
}

}  // namespace
