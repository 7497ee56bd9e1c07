// A Redlock's acquisition without servers, row by row of its table.
#include "backends/redis/redlock_acquisition.hpp"

#include "redlock_machine_support.hpp"

namespace interlock::redis {
namespace {

using namespace testing_support;

struct RedlockAcquiring : testing::Test {
  RedlockAcquisition begun(bool queue = true, const ClaimPtr& wanted = claim()) {
    RedlockAcquisition machine(nodes, waiters, wanted, queue, 10);
    Steps steps;
    machine.begin(1000, steps);
    EXPECT_EQ(sent(steps), "ask 0 acquire, ask 1 acquire, ask 2 acquire");
    EXPECT_EQ(steps.sends.front().message.attempt, 11U);
    return machine;
  }
  Steps first(RedlockAcquisition& machine, std::size_t node, Vote vote,
              std::uint64_t attempt = 11) {
    Steps steps;
    machine.first(attempt, node, std::move(vote), steps);
    return steps;
  }
  static Steps second(RedlockAcquisition& machine, std::size_t node, Vote vote) {
    Steps steps;
    machine.second(node, std::move(vote), steps);
    return steps;
  }

  RedlockNodes nodes = three_nodes();
  RedlockWaiters waiters{2};
};

TEST_F(RedlockAcquiring, AMajorityThatAgreesIsAGrantInOnePhase) {
  auto machine = begun();
  EXPECT_FALSE(first(machine, 0, granted(5, 5)).answer);
  const auto steps = first(machine, 1, granted(5, 5));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::granted);
  EXPECT_EQ(steps.answer->fences, std::vector{Fence{5}});
  EXPECT_EQ(sent(steps), "");
  EXPECT_TRUE(steps.stop_waiting);
}

TEST_F(RedlockAcquiring, NodesThatDisagreeConfirmTheLargestNumber) {
  auto machine = begun();
  first(machine, 0, granted(5, 5));
  const auto asks = first(machine, 2, granted(9, 9));
  EXPECT_FALSE(asks.answer);
  EXPECT_EQ(sent(asks), "ask 0 confirm, ask 2 confirm") << "those that were counted, and no other";
  EXPECT_EQ(asks.sends[0].message.fences, std::vector<std::uint64_t>{9});
  EXPECT_EQ(asks.sends[0].message.hold, 5U);
  EXPECT_FALSE(second(machine, 2, granted(0, 0)).answer);
  const auto steps = second(machine, 0, granted(0, 0));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->fences, std::vector{Fence{9}});
}

TEST_F(RedlockAcquiring, ANodeThatIsLateLearnsTheFenceAndDoesNotCount) {
  auto machine = begun();
  first(machine, 0, granted(5, 5));
  first(machine, 2, granted(9, 9));
  EXPECT_EQ(sent(first(machine, 1, granted(7, 7))), "tell 1 confirm");
  second(machine, 0, granted(0, 0));
  const auto steps = second(machine, 2, says(Said::lost));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::unknown);
  EXPECT_EQ(steps.answer->why->message(),
            "a majority granted it, but did not confirm it: 2 of 3 nodes are needed (one: granted; "
            "two: not answered yet; three: not held any more)");
  EXPECT_EQ(sent(steps), "insist 0 undo, insist 1 undo, insist 2 undo");
}

TEST_F(RedlockAcquiring, AMinorityGivesWayAndWaitsEverywhereWithOneNumber) {
  auto machine = begun();
  first(machine, 0, granted(5, 5));
  first(machine, 1, queued(1000, 2));
  const auto steps = first(machine, 2, queued(1003, 1));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::queued);
  EXPECT_EQ(steps.answer->place, 1U) << "when a majority is out of the way";
  ASSERT_TRUE(steps.waits);
  EXPECT_EQ(steps.waits->ticket, 1003U);
  EXPECT_EQ(steps.waits->free, bit(0));
  EXPECT_EQ(sent(steps), "tell 0 yield, tell 1 yield") << "the third has that number already";
}

TEST_F(RedlockAcquiring, AOneShotGivesBackAMinorityAtOnce) {
  auto machine = begun(false);
  first(machine, 0, granted(5, 5));
  first(machine, 1, says(Said::busy));
  const auto steps = first(machine, 2, says(Said::busy));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::busy);
  EXPECT_EQ(sent(steps), "insist 0 undo, insist 1 undo, insist 2 undo");
  EXPECT_TRUE(steps.sends[0].until_closed);
}

TEST_F(RedlockAcquiring, ASilentNodeIsNotWaitedForWhenOthersHoldIt) {
  nodes.silent = bit(2);
  auto machine = begun(false);
  first(machine, 0, granted(5, 5));
  EXPECT_TRUE(first(machine, 1, says(Said::busy)).answer);
}

TEST_F(RedlockAcquiring, NodesThatLostTheirDataAreMendedOnceAndAskedAgainWithTheNextNumber) {
  auto machine = begun();
  first(machine, 0, granted(5, 5));
  first(machine, 1, says(Said::fresh));
  const auto mends = first(machine, 2, says(Said::fresh));
  EXPECT_TRUE(mends.mend);
  EXPECT_FALSE(mends.answer);
  Steps again;
  machine.begin(2000, again);
  EXPECT_EQ(again.sends.front().message.attempt, 12U);
  first(machine, 0, granted(5, 5), 11);
  first(machine, 1, granted(5, 5), 11);
  EXPECT_FALSE(first(machine, 1, granted(5, 5), 11).answer) << "of the round before";
  first(machine, 0, granted(5, 5), 12);
  first(machine, 1, says(Said::fresh), 12);
  const auto steps = first(machine, 2, says(Said::fresh), 12);
  ASSERT_TRUE(steps.answer);
  EXPECT_FALSE(steps.mend);
  EXPECT_EQ(sent(steps), "insist 0 undo, insist 1 undo, insist 2 undo");
  EXPECT_EQ(steps.sends[0].message.attempt, 12U);
}

TEST_F(RedlockAcquiring, WhatWasNeverSentLeavesNothingToUndo) {
  auto machine = begun();
  first(machine, 0, fails("no connection", false));
  const auto early = first(machine, 1, fails("no connection", false));
  ASSERT_TRUE(early.answer);
  EXPECT_FALSE(early.answer->unsent) << "the third may have it";
  auto other = begun();
  first(other, 2, fails("no connection", false));
  first(other, 0, fails("no connection", false));
  EXPECT_EQ(early.answer->why->message(),
            "no majority: 2 of 3 nodes are needed (one: no connection; two: no connection; three: "
            "not answered yet)");
}

TEST_F(RedlockAcquiring, AClaimThatTakesOverIsNeverUndone) {
  auto wanted = std::make_shared<Claim>(*claim());
  wanted->instead_of = {.high = 0, .low = 3};
  auto machine = begun(false, wanted);
  first(machine, 0, granted(5, 5));
  first(machine, 1, says(Said::busy));
  const auto steps = first(machine, 2, says(Said::busy));
  ASSERT_TRUE(steps.answer);
  EXPECT_TRUE(steps.answer->partly);
  EXPECT_EQ(sent(steps), "");
}

TEST_F(RedlockAcquiring, ATakeOverEndsWhatItTookOverAlsoWhereItWasNotGranted) {
  auto wanted = std::make_shared<Claim>(*claim());
  wanted->instead_of = {.high = 0, .low = 3};
  auto machine = begun(false, wanted);
  first(machine, 0, granted(5, 5));
  EXPECT_EQ(sent(first(machine, 1, granted(5, 5))), "ask 0 confirm, ask 1 confirm")
      << "also if they agree: what it takes over ends when it is confirmed";
  second(machine, 0, granted(0, 0));
  const auto steps = second(machine, 1, granted(0, 0));
  EXPECT_EQ(sent(steps), "insist 2 release");
  EXPECT_EQ(steps.sends[0].message.claim->owner.low, 3U);
  EXPECT_FALSE(steps.sends[0].until_closed);
}

TEST_F(RedlockAcquiring, AClosedCallBeginsNoOtherRound) {
  auto machine = begun();
  Steps steps;
  machine.refuse(steps);
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->why->message(),
            "it was released or asked for again before all nodes had answered");
  EXPECT_TRUE(steps.answer->why->maybe_held());
  EXPECT_EQ(sent(first(machine, 0, granted(5, 5))), "");
}

}  // namespace
}  // namespace interlock::redis
