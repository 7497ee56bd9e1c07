// What the calls of one client of a Redlock share, without servers.
#include "backends/redis/redlock_calls.hpp"

#include <set>

#include "redlock_machine_support.hpp"

namespace interlock::redis {
namespace {

using namespace testing_support;

struct RedlockCalling : testing::Test {
  using Actions = RedlockCalls::Actions;

  [[nodiscard]] RedlockCalls::Now at(Duration since = {}) const {
    return {.time = begun + since, .clock = 1000};
  }
  /// What these letters say.
  Actions hear(const Actions& asked, std::size_t node, const Vote& vote, Duration since = {}) {
    Actions actions;
    for (const auto& send : asked.sends) {
      if (send.node == node) calls.heard(send.letter, node, vote, at(since), actions);
    }
    return actions;
  }
  static std::set<Kind> kinds(const Actions& actions) {
    std::set<Kind> kinds;
    for (const auto& send : actions.sends) kinds.insert(send.message.kind);
    return kinds;
  }

  TimePoint begun{1h};
  RedlockCalls calls{three_nodes(), 5s};
};

TEST_F(RedlockCalling, ANodeMayTakeAQuarterOfTheTtl) {
  Actions asked;
  calls.acquire(claim(), true, {}, at(), asked);
  ASSERT_EQ(asked.sends.size(), 3U);
  EXPECT_EQ(asked.sends[0].deadline, begun + 1s);
  EXPECT_EQ(calls.next_tick(), begun + 1s);
  Actions expired;
  calls.tick(at(1s), expired);
  ASSERT_EQ(expired.answers.size(), 1U);
  EXPECT_NE(expired.answers[0].second.why->message().find("one: no answer within 1s"),
            std::string::npos)
      << expired.answers[0].second.why->message();
  EXPECT_EQ(calls.nodes().silent, 7U);
  EXPECT_EQ(kinds(expired), std::set{Kind::undo});
}

// Number 204 in docs/proof.md.
TEST_F(RedlockCalling, ANodeThatRepliesWithAnErrorIsWaitedForTheNextTime) {
  const auto loading = Vote::refused({Errc::unreachable, "the server is loading its data"});
  for (const auto& vote : {loading, Vote::withdrawn()}) {
    Actions first, second;
    calls.acquire(claim(), false, {}, at(), first);
    hear(first, 2, vote);
    EXPECT_EQ(calls.nodes().silent, 0U);
    calls.acquire(claim(8), false, {}, at(), second);
    hear(second, 0, granted(5, 5));
    EXPECT_TRUE(hear(second, 1, says(Said::busy)).answers.empty()) << "the third may grant it";
    const auto last = hear(second, 2, granted(5, 5));
    ASSERT_EQ(last.answers.size(), 1U);
    EXPECT_EQ(last.answers[0].second.verdict, Verdict::granted);
  }
}

TEST_F(RedlockCalling, ANodeThatDoesNotReplyIsNotWaitedForTheNextTime) {
  Actions first, second;
  calls.acquire(claim(), false, {}, at(), first);
  hear(first, 2, fails());
  EXPECT_EQ(calls.nodes().silent, 4U);
  calls.acquire(claim(8), false, {}, at(), second);
  hear(second, 0, granted(5, 5));
  EXPECT_EQ(hear(second, 1, says(Said::busy)).answers.size(), 1U);
}

// Number 4 in docs/proof.md.
TEST_F(RedlockCalling, ACallThatGivesUpLateLeavesALaterCallAlone) {
  Actions first, second;
  calls.acquire(claim(), true, {}, at(), first);
  hear(first, 0, granted(5, 5));
  hear(first, 1, says(Said::fresh));
  const auto mends = hear(first, 2, says(Said::fresh));
  EXPECT_EQ(kinds(mends), std::set{Kind::look});
  calls.acquire(claim(), true, {}, at(), second);
  EXPECT_GT(second.sends[0].message.attempt, first.sends[0].message.attempt + 1);
  Actions late;
  calls.tick(at(2s), late);
  EXPECT_FALSE(kinds(late).contains(Kind::acquire)) << "no other round of the first";
}

TEST_F(RedlockCalling, ARoundThatWasUndoneIsNotUndoneOnceItsOwnerIsAskedForAnew) {
  Actions first, second;
  calls.acquire(claim(), false, {}, at(), first);
  hear(first, 0, says(Said::busy));
  hear(first, 1, granted(5, 5));
  const auto undone = hear(first, 2, says(Said::busy));
  ASSERT_EQ(kinds(undone), std::set{Kind::undo});
  hear(undone, 1, fails());
  calls.acquire(claim(), false, {}, at(), second);
  Actions due;
  calls.tick(at(300ms), due);
  EXPECT_FALSE(kinds(due).contains(Kind::undo));
  EXPECT_FALSE(calls.may_send(first.sends[0].letter));
}

TEST_F(RedlockCalling, AReleaseIsInsistedOnUntilTheNodeHasDoneIt) {
  Actions asked;
  calls.release(claim(), {}, at(), asked);
  hear(asked, 0, granted(0, 0));
  hear(asked, 1, granted(0, 0));
  const auto again = hear(asked, 2, fails());
  ASSERT_EQ(again.sends.size(), 1U);
  hear(again, 2, fails());
  EXPECT_EQ(calls.next_tick(), begun + RedlockDebts::kPause);
  Actions due;
  calls.tick(at(RedlockDebts::kPause), due);
  ASSERT_EQ(due.sends.size(), 1U);
  EXPECT_EQ(calls.open(), 1U);
  hear(due, 2, says(Said::lost));
  EXPECT_EQ(calls.open(), 0U);
  EXPECT_EQ(calls.next_tick(), TimePoint::max());
}

TEST_F(RedlockCalling, NoHealIsSentAfterTheRelease) {
  Actions renewal, release;
  calls.renew(claim(), {}, at(), renewal);
  hear(renewal, 0, granted(0, 5));
  calls.release(claim(), {}, at(), release);
  hear(renewal, 1, granted(0, 5));
  EXPECT_TRUE(hear(renewal, 2, says(Said::lost)).sends.empty());
}

// Number 207 in docs/proof.md.
TEST_F(RedlockCalling, ARenewalThatTheReleaseOvertookHealsNothing) {
  Actions release, renewal, later;
  calls.release(claim(), {}, at(), release);
  const auto first = hear(release, 0, fails());
  const auto second = hear(release, 1, fails());
  hear(release, 2, granted(0, 0));
  calls.renew(claim(), {}, at(), renewal);
  hear(renewal, 2, says(Said::lost));
  hear(renewal, 0, granted(0, 5));
  const auto confirmed = hear(renewal, 1, granted(0, 5));
  EXPECT_EQ(confirmed.answers.size(), 1U);
  EXPECT_FALSE(kinds(confirmed).contains(Kind::heal)) << "nobody would release it there again";
  hear(first, 0, granted(0, 0));
  hear(second, 1, granted(0, 0));
  EXPECT_EQ(calls.open(), 0U);
  calls.renew(claim(), {}, at(), later);
  hear(later, 2, says(Said::lost));
  hear(later, 0, granted(0, 5));
  EXPECT_TRUE(kinds(hear(later, 1, granted(0, 5))).contains(Kind::heal)) << "nothing is released";
}

}  // namespace
}  // namespace interlock::redis
