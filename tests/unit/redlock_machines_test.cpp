// A Redlock's renewals, releases, mending, debts and waiters without servers, row by row of their tables.
#include "backends/redis/redlock_debts.hpp"
#include "backends/redis/redlock_mending.hpp"
#include "backends/redis/redlock_release.hpp"
#include "backends/redis/redlock_renewal.hpp"
#include "backends/redis/redlock_waiters.hpp"
#include "redlock_machine_support.hpp"

namespace interlock::redis {
namespace {

using namespace testing_support;

template <class Machine>
Steps hear(Machine& machine, std::size_t node, Vote vote) {
  Steps steps;
  machine.heard(node, std::move(vote), steps);
  return steps;
}

TEST(RedlockRenewing, HealsInTheRoundInWhichAMajorityConfirmed) {
  const auto nodes = three_nodes();
  RedlockRenewal machine(nodes, claim());
  EXPECT_EQ(sent(hear(machine, 0, says(Said::lost))), "");
  hear(machine, 1, granted(0, 8));
  const auto steps = hear(machine, 2, granted(0, 8));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::granted);
  EXPECT_EQ(sent(steps), "tell 0 heal");
  EXPECT_EQ(steps.sends[0].message.fences, std::vector<std::uint64_t>{8});
}

TEST(RedlockRenewing, HealsALateNodeToo) {
  const auto nodes = three_nodes();
  RedlockRenewal machine(nodes, claim());
  hear(machine, 1, granted(0, 8));
  hear(machine, 2, granted(0, 8));
  const auto steps = hear(machine, 0, says(Said::lost));
  EXPECT_FALSE(steps.answer);
  EXPECT_EQ(sent(steps), "tell 0 heal");
}

TEST(RedlockRenewing, NeverCreates) {
  const auto nodes = three_nodes();
  RedlockRenewal machine(nodes, claim());
  hear(machine, 0, granted(0, 8));
  hear(machine, 1, says(Said::lost));
  const auto steps = hear(machine, 2, says(Said::lost));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::lost);
  EXPECT_EQ(sent(steps), "");
}

TEST(RedlockRenewing, IsInDoubtAsLongAsItMayBeHeld) {
  const auto nodes = three_nodes();
  RedlockRenewal machine(nodes, claim());
  hear(machine, 0, granted(0, 8));
  hear(machine, 1, says(Said::lost));
  const auto steps = hear(machine, 2, fails("no answer within 1s"));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::unknown);
  EXPECT_EQ(steps.answer->why->message(),
            "no majority renewed it: 2 of 3 nodes are needed (one: granted; two: not held any "
            "more; three: no answer within 1s)");
}

TEST(RedlockReleasing, IsDoneWithAMajorityAndInsistsOnTheOthers) {
  const auto nodes = three_nodes();
  RedlockRelease machine(nodes, claim());
  hear(machine, 0, granted(0, 0));
  const auto steps = hear(machine, 1, granted(0, 0));
  ASSERT_TRUE(steps.answer);
  EXPECT_EQ(steps.answer->verdict, Verdict::granted);
  const auto late = hear(machine, 2, fails());
  EXPECT_EQ(sent(late), "insist 2 release");
  EXPECT_FALSE(late.sends[0].until_closed) << "also if its owner is asked for anew";
}

TEST(RedlockReleasing, SaysWhatWasFound) {
  const auto nodes = three_nodes();
  const auto verdict = [&](std::vector<Vote> votes) {
    RedlockRelease machine(nodes, claim());
    std::optional<Answer> answer;
    for (std::size_t node = 0; node < votes.size(); ++node) {
      auto steps = hear(machine, node, votes[node]);
      if (!answer) answer = std::move(steps.answer);
    }
    return answer ? std::optional(answer->verdict) : std::nullopt;
  };
  EXPECT_EQ(verdict({says(Said::lost), says(Said::lost)}), Verdict::lost);
  EXPECT_EQ(verdict({says(Said::queued), says(Said::lost)}), Verdict::queued);
  EXPECT_EQ(verdict({granted(0, 0), fails(), says(Said::lost)}), Verdict::granted)
      << "one that can't say so may have held it";
  EXPECT_EQ(verdict({granted(0, 0), fails(), fails()}), Verdict::unknown);
}

struct RedlockMendingNodes : testing::Test {
  static Vote state(bool ready, std::uint64_t count, Duration holds,
                    std::optional<Duration> wait = std::nullopt) {
    Vote vote{.said = Said::state};
    vote.state = {
        .ready = ready, .count = count, .holds = holds, .wait = wait, .clock = 500, .born = "3"};
    return vote;
  }
  Steps hear(std::size_t node, const Vote& vote) {
    Steps steps;
    machine.heard(node, vote, now, steps);
    return steps;
  }

  TimePoint now{1h};
  RedlockNodes nodes = three_nodes();
  RedlockMending machine{nodes};
};

TEST_F(RedlockMendingNodes, ANewNodeWaitsForTheLongestHoldAndThenGetsTheLargestCounter) {
  Steps begins;
  ASSERT_TRUE(machine.mend(now, begins));
  EXPECT_EQ(sent(begins), "ask 0 look, ask 1 look, ask 2 look");
  hear(0, state(true, 70, 2s));
  hear(1, state(true, 90, 1s));
  const auto waits = hear(2, state(false, 0, 0s));
  EXPECT_EQ(sent(waits), "ask 2 wait");
  EXPECT_EQ(waits.sends[0].message.number, 2050U) << "milliseconds, with a margin";
  EXPECT_EQ(waits.sends[0].message.born, "3");
  EXPECT_EQ(sent(hear(2, state(false, 0, 0s, 300ms))), "") << "not yet over";
  EXPECT_TRUE(machine.resting());

  Steps early;
  EXPECT_FALSE(machine.mend(now + 299ms, early));
  EXPECT_TRUE(machine.mend(now + 300ms, early));
  hear(0, state(true, 70, 0s));
  hear(1, state(true, 91, 0s));
  hear(2, state(false, 0, 0s, 0ms));
  EXPECT_EQ(sent(hear(2, state(false, 0, 0s, 0ms))), "ask 0 look, ask 1 look, ask 2 look")
      << "the counters are read after the wait was over";
  hear(0, state(true, 70, 0s));
  hear(1, state(true, 95, 0s));
  const auto repairs = hear(2, state(false, 0, 0s, 0ms));
  EXPECT_EQ(sent(repairs), "ask 2 repair");
  EXPECT_EQ(repairs.sends[0].message.number, 95U);
}

TEST_F(RedlockMendingNodes, WithoutAMajorityThatCountsNothingIsMended) {
  Steps steps;
  machine.mend(now, steps);
  hear(0, fails());
  hear(1, state(true, 90, 1s));
  EXPECT_EQ(sent(hear(2, state(false, 0, 0s))), "");
  EXPECT_TRUE(machine.resting());
}

TEST_F(RedlockMendingNodes, AMajorityThatIsNewBeginsWithNumbersFromItsClocks) {
  Steps steps;
  machine.mend(now, steps);
  hear(0, state(false, 0, 0s));
  hear(1, state(false, 0, 0s));
  EXPECT_EQ(sent(hear(2, fails())), "ask 0 wait, ask 1 wait");
  hear(0, state(false, 0, 0s, 0ms));
  hear(1, state(false, 0, 0s, 0ms));
  hear(0, state(false, 0, 0s, 0ms));
  hear(1, state(false, 0, 0s, 0ms));
  const auto repairs = hear(2, fails());
  EXPECT_EQ(sent(repairs), "ask 0 repair, ask 1 repair");
  EXPECT_EQ(repairs.sends[0].message.number, 500U);
}

TEST(RedlockOwing, ANodeThatIsAwayIsAskedForOneOfItsDebtsAndThenForAll) {
  RedlockDebts debts;
  const TimePoint now{1h};
  for (const std::uint64_t call : {1, 2, 3}) debts.failed({.call = call}, now);
  EXPECT_EQ(debts.next_due(), now + RedlockDebts::kPause);
  EXPECT_FALSE(debts.due(now));
  const auto probe = debts.due(debts.next_due());
  ASSERT_TRUE(probe);
  EXPECT_EQ(debts.next_due(), TimePoint::max()) << "until that is answered";
  EXPECT_EQ(debts.done().size(), 2U);
  EXPECT_EQ(debts.done().size(), 0U);
}

TEST(RedlockWaiting, ItsTurnIsWhenAMajoritySaysSoAndItDoesNotAskJustNow) {
  RedlockWaiters waiters(2);
  const Owner owner{.high = 0, .low = 7};
  EXPECT_EQ(waiters.ask(owner), 0U);
  EXPECT_FALSE(waiters.turn(owner, 0));
  EXPECT_FALSE(waiters.turn(owner, 1)) << "it asks";
  EXPECT_TRUE(waiters.wait(owner, 40, 0, 1)) << "and was told meanwhile";
  EXPECT_EQ(waiters.ask(owner), 40U);
  EXPECT_FALSE(waiters.wait(owner, 40, bit(2), 3));
  EXPECT_TRUE(waiters.turn(owner, 0));
}

TEST(RedlockWaiting, ListensLateOnceForEachAttempt) {
  RedlockWaiters waiters(2);
  const Owner owner{.high = 0, .low = 7};
  waiters.wait(owner, 40, 0, 5);
  EXPECT_FALSE(waiters.listens(owner, 5, 0, false));
  EXPECT_FALSE(waiters.listens(owner, 4, 1, true)) << "of an earlier attempt";
  EXPECT_TRUE(waiters.listens(owner, 5, 1, true)) << "a turn may have been missed";
  EXPECT_FALSE(waiters.listens(owner, 5, 2, true));
}

}  // namespace
}  // namespace interlock::redis
