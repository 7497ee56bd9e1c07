// The acquisition machine under a clock that the test moves: no thread, no socket, no store.
#include "core/acquisition.hpp"

#include <gtest/gtest.h>

#include <set>

using namespace interlock;
using interlock::core::Acquisition;
using namespace std::chrono_literals;

namespace {

struct Acquiring : testing::Test {
  TimePoint now{1h};

  static Acquisition::Plan plan() {
    return {
        .ttl = 10s, .drift = 100ms, .retry = {.jitter = 0}, .heartbeat = 1s, .call_timeout = 5s};
  }
  static Answer granted() { return {.verdict = Verdict::granted, .fences = {Fence{7}}}; }
  static Answer queued(std::uint32_t place = 0, std::optional<Duration> look = {}) {
    return {.verdict = Verdict::queued, .place = place, .look_again = look};
  }
  static Answer busy() { return {.verdict = Verdict::busy}; }
  static Answer down() { return Answer::failed({Errc::unreachable, "down"}); }
};

TEST_F(Acquiring, AskedAndGranted) {
  Acquisition a(plan());
  const auto step = a.start(now);
  EXPECT_TRUE(step.ask);
  EXPECT_EQ(step.call_deadline, now + 5s);
  EXPECT_FALSE(a.reply(now + 1s, step.call, now, granted()).forget);
  ASSERT_TRUE(a.done());
  EXPECT_EQ(a.outcome(), Outcome::granted);
  EXPECT_EQ(a.sent(), now) << "validity is counted from before the request left";
  EXPECT_EQ(a.fences(), std::vector<Fence>{Fence{7}});
}

TEST_F(Acquiring, AnAnswerThatTookLongerThanTheLeaseIsNoSuccess) {
  auto p = plan();
  p.call_timeout = 1min;
  Acquisition a(p);
  const auto step = a.start(now);
  const auto again = a.reply(now + 9900ms, step.call, now, granted());
  EXPECT_FALSE(a.done());
  EXPECT_TRUE(again.ask) << "ask once more: the store starts the TTL anew";
  a.reply(now + 10s, again.call, now + 9900ms, granted());
  EXPECT_EQ(a.sent(), now + 9900ms);
}

TEST_F(Acquiring, AOneShotThatIsBusyIsOver) {
  auto p = plan();
  p.one_shot = true;
  Acquisition a(p);
  EXPECT_FALSE(a.queue());
  const auto step = a.start(now);
  EXPECT_FALSE(a.reply(now, step.call, now, busy()).forget) << "it never queued";
  EXPECT_EQ(a.outcome(), Outcome::busy);
}

TEST_F(Acquiring, AOneShotWithoutAnAnswerIsUnreachableAndCleanedUp) {
  auto p = plan();
  p.one_shot = true;
  Acquisition a(p);
  a.start(now);
  EXPECT_TRUE(a.tick(now + 5s).forget);
  EXPECT_EQ(a.outcome(), Outcome::failed);
  EXPECT_EQ(a.why()->errc(), Errc::unreachable);
}

TEST_F(Acquiring, AWaiterAsksOnHeartbeatWhenSomethingEndsAndWhenWoken) {
  Acquisition a(plan());
  auto step = a.start(now);
  a.reply(now, step.call, now, queued(3));
  EXPECT_EQ(a.place(), 3U);
  EXPECT_EQ(a.next_tick(), now + 1s);
  EXPECT_FALSE(a.tick(now + 999ms).ask);
  step = a.tick(now + 1s);
  EXPECT_TRUE(step.ask);
  a.reply(now + 1s, step.call, now + 1s, queued(0, 300ms));
  EXPECT_EQ(a.next_tick(), now + 1300ms);
  step = a.wake(now + 1100ms);
  EXPECT_TRUE(step.ask);
  a.reply(now + 1200ms, step.call, now + 1100ms, granted());
  EXPECT_EQ(a.attempts(), 3);
  EXPECT_EQ(a.waited(now + 1200ms), 1200ms);
}

TEST_F(Acquiring, AWakeUpDuringACallIsNotLost) {
  Acquisition a(plan());
  const auto step = a.start(now);
  EXPECT_FALSE(a.wake(now).ask);
  EXPECT_TRUE(a.reply(now, step.call, now, queued()).ask);
}

TEST_F(Acquiring, TheDeadlineEndsAWaitAndItsPlaceInTheQueue) {
  auto p = plan();
  p.deadline = now + 100ms;
  Acquisition a(p);
  const auto step = a.start(now);
  EXPECT_EQ(step.call_deadline, now + 100ms);
  a.reply(now, step.call, now, queued());
  EXPECT_TRUE(a.tick(now + 100ms).forget);
  EXPECT_EQ(a.outcome(), Outcome::timed_out);
}

TEST_F(Acquiring, OutOfTimeBeforeAnyStoreCouldHaveAnsweredIsTimedOut) {
  auto p = plan();
  p.deadline = now + 5ms;
  Acquisition a(p);
  a.start(now);
  EXPECT_TRUE(a.tick(now + 5ms).forget);
  EXPECT_EQ(a.outcome(), Outcome::timed_out);
}

TEST_F(Acquiring, OutOfTimeBecauseNobodyAnswersIsNotTimedOut) {
  auto p = plan();
  p.deadline = now + 400ms;
  Acquisition a(p);
  a.start(now);
  EXPECT_TRUE(a.tick(now + 400ms).forget);
  EXPECT_EQ(a.outcome(), Outcome::failed);
  EXPECT_EQ(a.why()->errc(), Errc::unreachable);
  EXPECT_TRUE(a.why()->maybe_held());
}

TEST_F(Acquiring, ThreeRetriesAreFourAttemptsAndNoPauseAfterTheLast) {
  auto p = plan();
  p.tries = Retry{.attempts = 4, .first = 100ms, .multiplier = 2, .jitter = 0};
  Acquisition a(p);
  auto step = a.start(now);
  for (const auto pause : {100ms, 200ms, 400ms}) {
    a.reply(now, step.call, now, busy());
    EXPECT_EQ(a.next_tick(), now + pause) << "the first delay is the first delay";
    now += pause;
    step = a.tick(now);
    EXPECT_TRUE(step.ask);
  }
  a.reply(now, step.call, now, busy());
  EXPECT_EQ(a.outcome(), Outcome::exhausted);
  EXPECT_EQ(a.attempts(), 4);
}

TEST_F(Acquiring, JitterOnlyShortensAndNotByMuch) {
  auto p = plan();
  p.tries = Retry{.attempts = 2, .first = 100ms, .jitter = 0.2};
  for (p.seed = 1; p.seed < 200; ++p.seed) {
    Acquisition a(p);
    const auto step = a.start(now);
    a.reply(now, step.call, now, busy());
    EXPECT_LE(a.next_tick(), now + 100ms);
    EXPECT_GE(a.next_tick(), now + 80ms);
  }
}

// Row 0.4: those who were refused at the same moment come back at different ones.
TEST_F(Acquiring, JitterSpreadsThePausesOfSeveralCallers) {
  const auto pauses = [&](double jitter) {
    auto p = plan();
    p.tries = Retry{.attempts = 2, .first = 100ms, .jitter = jitter};
    std::set<TimePoint> ends;
    for (p.seed = 1; p.seed <= 200; ++p.seed) {
      Acquisition a(p);
      const auto step = a.start(now);
      a.reply(now, step.call, now, busy());
      ends.insert(a.next_tick());
    }
    return ends;
  };
  const auto spread = pauses(0.2);
  EXPECT_GT(spread.size(), 150U);
  EXPECT_LT(*spread.begin(), now + 85ms);
  EXPECT_GT(*spread.rbegin(), now + 95ms);
  EXPECT_EQ(pauses(0), std::set<TimePoint>{now + 100ms});
}

TEST_F(Acquiring, AStoreThatDoesNotAnswerIsAskedAsOftenAsThePolicySays) {
  auto p = plan();
  p.retry = Retry{.attempts = 3, .first = 100ms, .multiplier = 2, .jitter = 0};
  Acquisition a(p);
  auto step = a.start(now);
  a.reply(now, step.call, now, down());
  EXPECT_EQ(a.next_tick(), now + 100ms);
  step = a.tick(now += 100ms);
  step = a.tick(now += 5s);  // no answer at all
  EXPECT_FALSE(step.ask);
  step = a.tick(now += 200ms);
  EXPECT_TRUE(step.ask);
  EXPECT_TRUE(a.reply(now, step.call, now, down()).forget);
  EXPECT_EQ(a.outcome(), Outcome::failed);
}

TEST_F(Acquiring, FailuresCountInARowOnly) {
  auto p = plan();
  p.retry = Retry{.attempts = 2, .first = 1ms, .jitter = 0};
  Acquisition a(p);
  auto step = a.start(now);
  for (int i = 0; i < 5; ++i) {
    a.reply(now, step.call, now, down());
    step = a.tick(now += 1ms);
    a.reply(now, step.call, now, queued());
    step = a.tick(now += 1s);
  }
  EXPECT_FALSE(a.done());
}

TEST_F(Acquiring, GrantsThatWereTakenBackCountWhateverComesInBetween) {
  auto p = plan();
  p.retry = Retry{.attempts = 3, .first = 1ms, .jitter = 0};
  Acquisition a(p);
  auto undone = down();
  undone.undone = true;
  auto step = a.start(now);
  for (int i = 0; i < 2; ++i) {
    a.reply(now, step.call, now, undone);
    step = a.tick(now += 1ms);
    a.reply(now, step.call, now, queued());
    step = a.tick(now += 1s);
  }
  EXPECT_FALSE(a.done());
  EXPECT_TRUE(a.reply(now, step.call, now, undone).forget);
  EXPECT_EQ(a.outcome(), Outcome::failed);
}

TEST_F(Acquiring, WhatNeverReachedTheStoreLeavesNothingToCleanUp) {
  auto unsent = down();
  unsent.unsent = true;
  auto p = plan();
  p.retry.attempts = 2;
  Acquisition never(p);
  auto step = never.start(now);
  EXPECT_FALSE(never.reply(now, step.call, now, unsent).forget);
  step = never.tick(now + 1s);
  ASSERT_TRUE(step.ask);
  EXPECT_FALSE(never.reply(now + 1s, step.call, now + 1s, unsent).forget);
  EXPECT_EQ(never.outcome(), Outcome::failed);

  Acquisition once(p);
  step = once.start(now);
  once.reply(now, step.call, now, down());
  step = once.tick(now + 1s);
  EXPECT_TRUE(once.reply(now + 1s, step.call, now + 1s, unsent).forget)
      << "the first one may be there";

  Acquisition cancelled(p);
  step = cancelled.start(now);
  EXPECT_TRUE(cancelled.cancel(now).forget) << "it is under way";

  p.one_shot = true;
  Acquisition silent(p);
  step = silent.start(now);
  EXPECT_TRUE(silent.tick(now + 5s).forget) << "nobody knows";
}

TEST_F(Acquiring, ARefusalIsFinal) {
  Acquisition a(plan());
  const auto step = a.start(now);
  a.reply(now, step.call, now, Answer::failed({Errc::wrong_kind, "a semaphore"}));
  EXPECT_EQ(a.outcome(), Outcome::failed);
  EXPECT_EQ(a.why()->errc(), Errc::wrong_kind);
}

TEST_F(Acquiring, CancellingLeavesNothingBehindEvenIfTheGrantIsOnItsWay) {
  Acquisition a(plan());
  const auto step = a.start(now);
  EXPECT_TRUE(a.cancel(now).forget);
  EXPECT_EQ(a.outcome(), Outcome::cancelled);
  EXPECT_TRUE(a.reply(now + 1s, step.call, now, granted()).forget);
  EXPECT_TRUE(a.reply(now + 1s, step.call, now, queued()).forget);
  EXPECT_FALSE(a.reply(now + 1s, step.call, now, busy()).forget);
  EXPECT_EQ(a.outcome(), Outcome::cancelled);
}

TEST_F(Acquiring, ALateGrantCounts) {
  Acquisition a(plan());
  const auto step = a.start(now);
  a.tick(now + 5s);
  a.reply(now + 5050ms, step.call, now, granted());
  EXPECT_EQ(a.outcome(), Outcome::granted);
  EXPECT_EQ(a.sent(), now);
}

// A store may take back what the newer call was granted: the owner is the same.
TEST_F(Acquiring, OnceItAskedAgainOnlyTheNewerAnswerCounts) {
  Acquisition a(plan());
  const auto first = a.start(now);
  a.tick(now + 5s);
  const auto second = a.tick(now + 5100ms);
  ASSERT_TRUE(second.ask);
  a.reply(now + 5200ms, first.call, now, granted());
  EXPECT_FALSE(a.done());
  a.reply(now + 5300ms, second.call, now + 5100ms,
          Answer::failed({Errc::unreachable, "taken back"}));
  a.reply(now + 5300ms, first.call, now, granted());
  EXPECT_FALSE(a.done());
  const auto third = a.tick(now + 10s);
  ASSERT_TRUE(third.ask);
  a.reply(now + 10s, third.call, now + 10s, granted());
  EXPECT_EQ(a.outcome(), Outcome::granted);
  EXPECT_EQ(a.sent(), now + 10s);
}

TEST_F(Acquiring, LateAnswersOtherThanAGrantSayNothing) {
  Acquisition a(plan());
  const auto first = a.start(now);
  a.tick(now + 5s);
  const auto second = a.tick(now + 5100ms);
  a.reply(now + 5200ms, second.call, now + 5100ms, queued(1));
  a.reply(now + 5200ms, first.call, now, busy());
  EXPECT_FALSE(a.done());
  EXPECT_EQ(a.place(), 1U);
}

TEST(RetryPresets, AreWhatTheySay) {  // row 0.4
  EXPECT_GT(Retry::standard().jitter, 0);
  EXPECT_GT(Retry::aggressive().jitter, 0);
  EXPECT_EQ(Retry::standard().attempts, 10);
  EXPECT_EQ(Retry::standard().delay(1), 100ms);
  EXPECT_EQ(Retry::standard().delay(2), 200ms);
  EXPECT_EQ(Retry::standard().delay(50), 5s);
  EXPECT_EQ(Retry::none().attempts, 1);
  EXPECT_EQ(Retry::aggressive().attempts, 50);
  EXPECT_EQ(Retry::aggressive().delay(1), 50ms);
  EXPECT_EQ(Retry::aggressive().delay(2), 75ms);
  EXPECT_EQ(Retry::aggressive().delay(40), 1s);
}

// Row 2.2: the retry interval of the forms that try a number of times.
TEST(RetryPresets, EveryIsTheSamePauseAfterEachTry) {
  constexpr auto fixed = Retry::every(50ms, 4);
  EXPECT_EQ(fixed.attempts, 4);
  for (int failed = 1; failed < 100; ++failed) EXPECT_EQ(fixed.delay(failed), 50ms);
  EXPECT_EQ(fixed.jitter, 0);
}

TEST_F(Acquiring, AFixedIntervalIsKeptExactly) {  // row 2.2
  auto p = plan();
  p.tries = Retry::every(50ms, 4);
  Acquisition a(p);
  auto step = a.start(now);
  for (int failed = 1; failed < 4; ++failed) {
    ASSERT_FALSE(a.reply(now, step.call, now, busy()).ask);
    EXPECT_EQ(a.next_tick(), now + 50ms);
    now += 50ms;
    step = a.tick(now);
    ASSERT_TRUE(step.ask);
  }
  a.reply(now, step.call, now, busy());
  EXPECT_EQ(a.outcome(), Outcome::exhausted);
}

}  // namespace
