// The lease machine under a clock that the test moves.
#include "core/lease_machine.hpp"

#include <gtest/gtest.h>

using namespace interlock;
using interlock::core::LeaseMachine;
using namespace std::chrono_literals;

namespace {

struct Leasing : testing::Test {
  TimePoint sent{1h};
  static LeaseMachine::Plan plan() {
    return {.ttl = 30s, .drift = [](Duration) { return Duration(100ms); }, .call_timeout = 5s};
  }
};

TEST_F(Leasing, IsValidFromBeforeTheRequestLeft) {
  const LeaseMachine m(plan(), sent, sent + 2s);
  EXPECT_EQ(m.valid_until(), sent + 30s - 100ms);
  EXPECT_EQ(m.state(sent + 29s), LeaseState::held);
  EXPECT_EQ(m.state(m.valid_until()), LeaseState::lost) << "by the clock alone";
}

// Row 2.6.
TEST_F(Leasing, RenewsAfterAThirdAndMovesItsValidity) {
  LeaseMachine m(plan(), sent, sent);
  EXPECT_EQ(m.next_tick(), sent + 10s);
  EXPECT_FALSE(m.tick(sent + 9s).renew);
  EXPECT_TRUE(m.tick(sent + 10s).renew);
  m.renewed(sent + 11s, sent + 10s, 30s, Verdict::granted);
  EXPECT_EQ(m.valid_until(), sent + 40s - 100ms);
  EXPECT_EQ(m.next_tick(), sent + 20s);
}

TEST_F(Leasing, ARenewalThatFailsIsTriedAgainWhileItIsValidAndIsNoLoss) {
  LeaseMachine m(plan(), sent, sent);
  auto now = sent + 10s;
  int tries = 0;
  while (true) {
    const auto step = m.tick(now);
    if (step.lose) break;
    if (step.renew) {
      ++tries;
      m.renewed(now, now, 30s, Verdict::unknown);
    }
    ASSERT_GT(m.next_tick(), now);
    now = m.next_tick();
  }
  EXPECT_GE(tries, 6);
  EXPECT_EQ(now, sent + 30s - 100ms);
  EXPECT_NE(m.reason(), "");
}

TEST_F(Leasing, ASuccessAfterFailuresIsNoLoss) {
  LeaseMachine m(plan(), sent, sent);
  m.tick(sent + 10s);
  m.renewed(sent + 10s, sent + 10s, 30s, Verdict::unknown);
  const auto at = m.next_tick();
  EXPECT_TRUE(m.tick(at).renew);
  m.renewed(at + 1s, at, 30s, Verdict::granted);
  EXPECT_EQ(m.state(sent + 40s), LeaseState::held);
}

TEST_F(Leasing, AnUnansweredRenewalIsSentOnceMore) {
  LeaseMachine m(plan(), sent, sent);
  EXPECT_TRUE(m.tick(sent + 10s).renew);
  EXPECT_EQ(m.next_tick(), sent + 15s);
  EXPECT_TRUE(m.tick(sent + 15s).renew);
}

TEST_F(Leasing, AfterALossThereIsNoWayBack) {
  LeaseMachine m(plan(), sent, sent);
  m.tick(sent + 10s);
  EXPECT_TRUE(m.tick(sent + 30s).lose);
  EXPECT_FALSE(m.tick(sent + 31s).lose) << "told once";
  m.renewed(sent + 31s, sent + 10s, 1h, Verdict::granted);
  EXPECT_EQ(m.state(sent + 31s), LeaseState::lost);
  EXPECT_EQ(m.next_tick(), TimePoint::max());
}

TEST_F(Leasing, AGrantThatArrivesAfterValidityEndedIsTooLate) {
  LeaseMachine m(plan(), sent, sent);
  m.tick(sent + 10s);
  const auto step = m.renewed(sent + 30s, sent + 10s, 30s, Verdict::granted);
  EXPECT_TRUE(step.lose);
}

TEST_F(Leasing, TheStoresWordEndsItAtOnceAndWhatIsLeftIsForgotten) {
  LeaseMachine m(plan(), sent, sent);
  m.tick(sent + 10s);
  const auto step = m.renewed(sent + 10s, sent + 10s, 30s, Verdict::lost);
  EXPECT_TRUE(step.lose);
  EXPECT_TRUE(step.forget);
  EXPECT_EQ(m.state(sent + 11s), LeaseState::lost);
}

TEST_F(Leasing, ValidityNeverMovesBack) {
  LeaseMachine m(plan(), sent, sent);
  m.set_ttl(1min);
  m.renewed(sent + 1s, sent + 1s, 1min, Verdict::granted);
  m.renewed(sent + 2s, sent, 30s, Verdict::granted);  // a late answer to an earlier one
  EXPECT_EQ(m.valid_until(), sent + 61s - 100ms);
}

TEST_F(Leasing, MaxHoldEndsRenewalNotTheLease) {
  auto p = plan();
  p.max_hold = 15s;
  LeaseMachine m(p, sent, sent);
  m.tick(sent + 10s);
  m.renewed(sent + 10s, sent + 10s, 30s, Verdict::granted);
  EXPECT_FALSE(m.tick(sent + 20s).renew);
  EXPECT_EQ(m.next_tick(), sent + 40s - 100ms);
  EXPECT_TRUE(m.tick(m.next_tick()).lose);
  EXPECT_NE(m.reason().find("max_hold"), std::string::npos);
}

TEST_F(Leasing, WithoutRenewalItEndsByItself) {
  auto p = plan();
  p.renew = false;
  LeaseMachine m(p, sent, sent);
  EXPECT_EQ(m.next_tick(), m.valid_until());
  EXPECT_TRUE(m.hurry(sent + 1s).renew) << "but it can be asked for";
  EXPECT_EQ(m.next_tick(), m.valid_until());
}

// Row 4.6: a release ends the renewals at once.
TEST_F(Leasing, AReleasedOneIsNeverLost) {
  LeaseMachine m(plan(), sent, sent);
  m.end(LeaseState::released);
  EXPECT_FALSE(m.tick(sent + 15s).renew);
  EXPECT_FALSE(m.tick(sent + 1h).lose);
  EXPECT_FALSE(m.renewed(sent + 1h, sent, 30s, Verdict::lost).lose);
  EXPECT_EQ(m.state(sent + 1h), LeaseState::released);
}

}  // namespace
