// The rules of exclusion and order, without a store.
#include "core/lock_table.hpp"

#include <gtest/gtest.h>

using namespace interlock;
using namespace std::chrono_literals;

namespace {

struct Table : testing::Test {
  std::uint64_t last_fence = 0;
  std::vector<Owner> dead;
  LockTable table{{.next_fence = [this](const std::string&) { return ++last_fence; },
                   .gone =
                       [this](const Record& r) {
                         return std::find(dead.begin(), dead.end(), r.owner) != dead.end();
                       },
                   .ticket_ttl = 3s}};
  TimePoint now{1h};
  std::vector<Wake> wakes;
  std::uint64_t next = 0;

  Claim claim(std::vector<Part> parts, std::string identity = "", std::int32_t priority = 0) {
    normalize(parts, true);
    return {.owner = {7, ++next},
            .parts = std::move(parts),
            .ttl = 10s,
            .priority = priority,
            .who = std::make_shared<const Who>(Who{.identity = std::move(identity)})};
  }
  static Part x(std::string name) { return {.resource = std::move(name)}; }
  static Part r(std::string name) { return {.resource = std::move(name), .mode = Mode::shared}; }
  static Part s(std::string name, std::uint32_t n, std::uint32_t of) {
    return {.resource = std::move(name), .mode = Mode::slots, .slots = n, .capacity = of};
  }
  Answer ask(const Claim& c, bool queue = true) {
    wakes.clear();
    return table.acquire(c, queue, {.home = c.owner.low}, now, wakes);
  }
  Verdict verdict(const Claim& c, bool queue = true) { return ask(c, queue).verdict; }
  Verdict free(const Claim& c) {
    wakes.clear();
    return table.release(c, c.owner.low, now, wakes).verdict;
  }
  std::vector<Owner> woken() const {
    std::vector<Owner> owners;
    for (const auto& w : wakes) owners.push_back(w.owner);
    return owners;
  }
  using Owners = std::vector<Owner>;
};

TEST_F(Table, OfThoseWhoWereWokenTogetherForSlotsTheOneThatAskedTooSoonIsWokenAgain) {
  const auto all = claim({s("k", 2, 2)});
  const auto first = claim({s("k", 1, 2)});
  const auto second = claim({s("k", 1, 2)});
  EXPECT_EQ(verdict(all), Verdict::granted);
  EXPECT_EQ(verdict(first), Verdict::queued);
  EXPECT_EQ(verdict(second), Verdict::queued);
  EXPECT_EQ(free(all), Verdict::granted);
  EXPECT_EQ(woken(), (Owners{first.owner, second.owner}));
  EXPECT_EQ(verdict(second), Verdict::queued);
  EXPECT_EQ(verdict(first), Verdict::granted);
  EXPECT_EQ(woken(), Owners{second.owner});
  EXPECT_EQ(verdict(second), Verdict::granted);
}

TEST_F(Table, AnIdentityThatIsGrantedTheLockWakesItsOtherWaiters) {
  const auto writer = claim({x("k")});
  const auto reads = claim({r("k")}, "me");
  const auto writes = claim({x("k")}, "me");
  EXPECT_EQ(verdict(writer), Verdict::granted);
  EXPECT_EQ(verdict(reads), Verdict::queued);
  EXPECT_EQ(verdict(writes), Verdict::queued);
  EXPECT_EQ(free(writer), Verdict::granted);
  EXPECT_EQ(woken(), Owners{reads.owner});
  EXPECT_EQ(verdict(reads), Verdict::granted);
  EXPECT_EQ(woken(), Owners{writes.owner});
  EXPECT_EQ(verdict(writes), Verdict::granted);
}

TEST_F(Table, AnInnerHoldGetsTheLargestFenceOfItsIdentity) {
  const auto reads = claim({r("k")}, "me");
  const auto writes = claim({x("k")}, "me");
  const auto outer = ask(reads).fences.at(0);
  const auto inner = ask(writes).fences.at(0);
  EXPECT_LT(outer, inner);
  EXPECT_EQ(ask(claim({r("k")}, "me")).fences.at(0), inner);
  auto reads_again = claim({r("k")}, "me");
  reads_again.instead_of = writes.owner;
  EXPECT_EQ(ask(reads_again).fences.at(0), inner) << "a downgrade keeps it";
  EXPECT_EQ(ask(claim({r("k")}, "me")).fences.at(0), inner);
}

TEST_F(Table, AnUpgradeThatHasLostItsLockWakesWhomItHeldBack) {
  const auto reads = claim({r("k")});
  const auto other = claim({r("k")});
  auto upgrade = claim({x("k")});
  upgrade.instead_of = reads.owner;
  const auto held_back = claim({r("k")});
  EXPECT_EQ(verdict(reads), Verdict::granted);
  EXPECT_EQ(verdict(other), Verdict::granted);
  EXPECT_EQ(verdict(upgrade), Verdict::queued);
  EXPECT_EQ(verdict(held_back), Verdict::queued);
  EXPECT_EQ(free(reads), Verdict::granted);
  EXPECT_EQ(woken(), Owners{upgrade.owner});
  EXPECT_EQ(verdict(upgrade), Verdict::lost);
  EXPECT_EQ(woken(), Owners{held_back.owner});
  EXPECT_EQ(verdict(held_back), Verdict::granted);
}

TEST_F(Table, TakenSlotsAreInNobodysWayAsLongAsEnoughAreLeft) {
  const auto some = claim({s("a", 1, 3)});
  const auto most = claim({s("c", 2, 3)});
  const auto waits = claim({s("a", 2, 3), s("c", 2, 3)});
  EXPECT_EQ(verdict(some), Verdict::granted);
  EXPECT_EQ(verdict(most), Verdict::granted);
  EXPECT_EQ(verdict(waits), Verdict::queued);
  const auto found = table.in_the_way(waits, 10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().owner, most.owner);
}

TEST_F(Table, AWaiterThatFindsThatItIsItsTurnIsNotToldBesides) {
  auto ends = claim({x("k")});
  ends.ttl = 2s;
  const auto dies = claim({x("k")});
  const auto last = claim({x("k")});
  EXPECT_EQ(verdict(ends), Verdict::granted);
  EXPECT_EQ(verdict(dies), Verdict::queued);
  now += 2s;
  EXPECT_EQ(verdict(dies), Verdict::granted);
  EXPECT_EQ(woken(), Owners{});
  EXPECT_EQ(verdict(last), Verdict::queued);
  dead.push_back(dies.owner);
  EXPECT_EQ(verdict(last), Verdict::granted);
  EXPECT_EQ(woken(), Owners{});
}

// The first one waits for another lock, too, and the second one need not wait for it.
TEST_F(Table, AllWaitersWhoseIdentityHoldsTheLockAreWokenByTheLastOther) {
  const auto mine = claim({r("k")}, "me");
  const auto other = claim({r("k")});
  const auto elsewhere = claim({x("c")});
  const auto both = claim({x("c"), x("k")}, "me");
  const auto one = claim({x("k")}, "me");
  const auto stranger = claim({r("k")});
  for (const auto& c : {mine, other, elsewhere}) EXPECT_EQ(verdict(c), Verdict::granted);
  for (const auto& c : {both, one, stranger}) EXPECT_EQ(verdict(c), Verdict::queued);
  EXPECT_EQ(free(other), Verdict::granted);
  EXPECT_EQ(woken(), (Owners{both.owner, one.owner}));
  EXPECT_EQ(verdict(both), Verdict::queued);
  EXPECT_EQ(verdict(one), Verdict::granted);
}

TEST_F(Table, ExclusiveExcludesAllAndIsFreedByItsOwnerOnly) {
  const auto a = claim({x("k")});
  const auto b = claim({x("k")});
  const auto reader = claim({r("k")});
  EXPECT_EQ(verdict(a), Verdict::granted);
  EXPECT_EQ(verdict(b, false), Verdict::busy);
  EXPECT_EQ(verdict(reader, false), Verdict::busy);
  EXPECT_EQ(free(b), Verdict::lost);
  EXPECT_EQ(free(a), Verdict::granted);
  EXPECT_EQ(free(a), Verdict::lost);
  EXPECT_TRUE(table.inspect({}, now).empty());
  table.sweep(now, wakes);
  EXPECT_TRUE(table.rows().empty()) << "an idle name is forgotten";
}

TEST_F(Table, AskingAgainIsTheSameGrantAndNeverShortensIt) {
  auto a = claim({x("k")});
  const auto first = ask(a);
  a.ttl = 1s;
  const auto again = ask(a);
  EXPECT_EQ(again.verdict, Verdict::granted);
  EXPECT_EQ(again.fences, first.fences);
  now += 9s;
  EXPECT_EQ(table.renew(a, {}, now, wakes).verdict, Verdict::granted);
}

TEST_F(Table, ALateCopyOfARenewalTakesNoTimeAway) {
  auto a = claim({x("k")});
  ask(a);
  const auto late = a;
  a.ttl = 60s;
  EXPECT_EQ(table.renew(a, {}, now, wakes).verdict, Verdict::granted);
  EXPECT_EQ(table.renew(late, {}, now, wakes).verdict, Verdict::granted);
  now += 59s;
  EXPECT_EQ(verdict(claim({x("k")}), false), Verdict::busy);
  now += 1s;
  EXPECT_EQ(verdict(claim({x("k")}), false), Verdict::granted);
}

TEST_F(Table, WaitersAreServedInOrderAndOnlyTheNextIsWoken) {
  const auto a = claim({x("k")});
  const auto b = claim({x("k")});
  const auto c = claim({x("k")});
  ask(a);
  EXPECT_EQ(ask(b).place, 0U);
  EXPECT_EQ(ask(c).place, 1U);
  EXPECT_EQ(ask(b).place, 0U) << "a heartbeat keeps the place";
  free(a);
  EXPECT_EQ(woken(), Owners{b.owner});
  EXPECT_EQ(verdict(c), Verdict::queued) << "nobody overtakes the one that was woken";
  EXPECT_EQ(verdict(claim({x("k")}), false), Verdict::busy);
  EXPECT_EQ(verdict(b), Verdict::granted);
}

TEST_F(Table, HigherPriorityGoesFirstButNotAOneShot) {
  const auto a = claim({x("k")});
  const auto low = claim({x("k")}, "", 0);
  const auto high = claim({x("k")}, "", 5);
  ask(a);
  ask(low);
  EXPECT_EQ(ask(high).place, 0U);
  free(a);
  EXPECT_EQ(woken(), Owners{high.owner});
  EXPECT_EQ(verdict(claim({x("k")}, "", 9), false), Verdict::busy);
  EXPECT_EQ(verdict(high), Verdict::granted);
}

TEST_F(Table, AWaitingWriterHoldsBackLaterReadersAndReadersGoTogether) {
  const auto r1 = claim({r("k")});
  const auto w = claim({x("k")});
  const auto r2 = claim({r("k")});
  const auto r3 = claim({r("k")});
  EXPECT_EQ(verdict(r1), Verdict::granted);
  EXPECT_EQ(verdict(w), Verdict::queued);
  EXPECT_EQ(verdict(r2, false), Verdict::busy);
  EXPECT_EQ(verdict(r2), Verdict::queued);
  EXPECT_EQ(verdict(r3), Verdict::queued);
  free(r1);
  EXPECT_EQ(woken(), Owners{w.owner});
  EXPECT_EQ(verdict(w), Verdict::granted);
  free(w);
  EXPECT_EQ(woken(), (Owners{r2.owner, r3.owner}));
  EXPECT_EQ(verdict(r3), Verdict::granted) << "readers do not wait for each other";
  EXPECT_EQ(verdict(r2), Verdict::granted);
}

TEST_F(Table, AWriterThatGivesUpLetsTheReadersBehindItIn) {
  const auto r1 = claim({r("k")});
  const auto w = claim({x("k")});
  const auto r2 = claim({r("k")});
  ask(r1);
  ask(w);
  ask(r2);
  EXPECT_EQ(free(w), Verdict::queued);
  EXPECT_EQ(woken(), Owners{r2.owner});
}

TEST_F(Table, SlotsNeverExceedCapacityAndBigRequestsDoNotStarve) {
  const auto a = claim({s("k", 2, 3)});
  const auto big = claim({s("k", 3, 3)});
  const auto small = claim({s("k", 1, 3)});
  EXPECT_EQ(verdict(a), Verdict::granted);
  EXPECT_EQ(verdict(big), Verdict::queued);
  EXPECT_EQ(verdict(small), Verdict::queued) << "it would fit, but not before the one ahead";
  free(a);
  EXPECT_EQ(woken(), Owners{big.owner});
}

TEST_F(Table, WakingCountsSlotsDown) {
  const auto a = claim({s("k", 2, 2)});
  ask(a);
  std::vector<Claim> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(claim({s("k", 1, 2)}));
    ask(waiters.back());
  }
  free(a);
  EXPECT_EQ(woken(), (Owners{waiters[0].owner, waiters[1].owner}));
}

TEST_F(Table, AnotherKindOrCapacityIsAnErrorNotAWrongAnswer) {
  ask(claim({s("pool", 1, 2)}));
  EXPECT_EQ(ask(claim({s("pool", 1, 3)})).why->errc(), Errc::wrong_capacity);
  EXPECT_EQ(ask(claim({x("pool")})).why->errc(), Errc::wrong_kind);
  ask(claim({x("lock")}));
  EXPECT_EQ(ask(claim({s("lock", 1, 3)})).why->errc(), Errc::wrong_kind);
}

TEST_F(Table, SeveralAreAllOrNothingAndDisjointOnesNeverMeet) {
  const auto ab = claim({x("a"), x("b")});
  const auto bc = claim({x("b"), x("c")});
  const auto c = claim({x("c")});
  const auto d = claim({x("d")});
  EXPECT_EQ(verdict(ab), Verdict::granted);
  EXPECT_EQ(verdict(bc), Verdict::queued);
  EXPECT_EQ(verdict(c), Verdict::queued) << "c is free, but bc came first";
  EXPECT_EQ(verdict(d), Verdict::granted);
  free(ab);
  EXPECT_EQ(verdict(bc), Verdict::granted);
  EXPECT_EQ(ask(bc).fences.size(), 2U);
}

TEST_F(Table, SeveralAreRefusedWhicheverOfThemIsTaken) {
  const auto all = claim({x("a"), x("b"), x("c")});
  EXPECT_EQ(verdict(all, false), Verdict::granted);
  free(all);
  for (const auto* name : {"a", "b", "c"}) {
    const auto one = claim({x(name)});
    ask(one);
    EXPECT_EQ(verdict(all, false), Verdict::busy) << name;
    EXPECT_EQ(table.inspect({}, now).size(), 1U) << name;
    free(one);
  }
  EXPECT_EQ(verdict(all, false), Verdict::granted);
}

TEST_F(Table, AHierarchyIsExcludedByItsRootAndTheOtherWayRound) {
  const auto row = claim({x("t/row1")});
  const auto other_row = claim({x("t/row2")});
  const auto whole = claim({x("t")});
  EXPECT_EQ(verdict(row), Verdict::granted);
  EXPECT_EQ(verdict(other_row), Verdict::granted);
  EXPECT_EQ(verdict(whole), Verdict::queued);
  EXPECT_EQ(verdict(claim({x("t/row3")}), false), Verdict::busy) << "the table's writer waits";
  free(row);
  free(other_row);
  EXPECT_EQ(woken(), Owners{whole.owner});
  EXPECT_EQ(verdict(whole), Verdict::granted);
  EXPECT_EQ(verdict(claim({x("t/row1")}), false), Verdict::busy);
}

TEST_F(Table, TheSameIdentityReEntersPastTheQueueAndTheLastReleaseFrees) {
  const auto outer = claim({x("k")}, "me");
  const auto waiter = claim({x("k")});
  const auto inner = claim({x("k")}, "me");
  const auto fence = ask(outer).fences;
  ask(waiter);
  const auto again = ask(inner);
  EXPECT_EQ(again.verdict, Verdict::granted);
  EXPECT_EQ(again.fences, fence) << "its own claim back";
  free(outer);
  EXPECT_EQ(verdict(waiter), Verdict::queued);
  free(inner);
  EXPECT_EQ(verdict(waiter), Verdict::granted);
}

TEST_F(Table, AReaderOfTheSameIdentityThatWritesGetsANewFence) {
  const auto reader = claim({r("k")}, "me");
  const auto stranger = claim({r("k")});
  const auto writer = claim({x("k")}, "me");
  ask(reader);
  const auto seen = ask(stranger).fences;
  free(stranger);
  EXPECT_GT(ask(writer).fences, seen) << "the protected store has seen the stranger's";
}

TEST_F(Table, AWaiterThatIsPutOutOfOneRowKeepsItsPlaceInTheOthersOnly) {
  const auto a = claim({x("a")});
  const auto b = claim({x("b")});
  const auto ab = claim({x("a"), x("b")});
  const auto later = claim({x("b")});
  ask(a);
  ask(b);
  ask(ab);
  ask(later);
  auto only_a = ab;
  only_a.parts = {x("a")};
  EXPECT_EQ(free(only_a), Verdict::queued);
  EXPECT_EQ(ask(ab).place, 0U) << "its next heartbeat puts it back where it was";
  EXPECT_EQ(free(ab), Verdict::queued);
  EXPECT_EQ(free(ab), Verdict::lost);
  free(b);
  EXPECT_EQ(woken(), Owners{later.owner}) << "nothing of it is left in the way";
}

TEST_F(Table, AWriterBecomesAReaderWithoutAGap) {
  const auto w = claim({x("k")});
  const auto r1 = claim({r("k")});
  const auto w2 = claim({x("k")});
  const auto fence = ask(w).fences;
  ask(r1);
  ask(w2);
  auto reader = claim({r("k")});
  reader.instead_of = w.owner;
  const auto answer = ask(reader);
  EXPECT_EQ(answer.verdict, Verdict::granted);
  EXPECT_EQ(answer.fences, fence);
  EXPECT_EQ(woken(), Owners{r1.owner});
  EXPECT_EQ(verdict(r1), Verdict::granted);
  EXPECT_EQ(verdict(w2), Verdict::queued);
  EXPECT_EQ(free(w), Verdict::lost) << "the old owner is no more";
  EXPECT_EQ(verdict(reader), Verdict::granted) << "asking again";
}

TEST_F(Table, AReaderBecomesTheWriterAheadOfTheQueueAndTwoDoNotDeadlock) {
  const auto r1 = claim({r("k")});
  const auto r2 = claim({r("k")});
  const auto waiting = claim({x("k")});
  const auto fence = ask(r1).fences;
  ask(r2);
  ask(waiting);
  auto up1 = claim({x("k")});
  up1.instead_of = r1.owner;
  auto up2 = claim({x("k")});
  up2.instead_of = r2.owner;
  EXPECT_EQ(verdict(up1, false), Verdict::busy);
  EXPECT_EQ(ask(up1).place, 0U);
  EXPECT_EQ(verdict(up2), Verdict::busy) << "two that wait for each other would never end";
  EXPECT_EQ(verdict(claim({r("k")}), false), Verdict::busy);
  free(r2);
  EXPECT_EQ(woken(), Owners{up1.owner});
  const auto answer = ask(up1);
  EXPECT_EQ(answer.verdict, Verdict::granted);
  EXPECT_GT(answer.fences, fence);
  EXPECT_EQ(free(up1), Verdict::granted);
  EXPECT_EQ(woken(), Owners{waiting.owner});
}

TEST_F(Table, TakingOverWhatHasEndedIsLost) {
  const auto r1 = claim({r("k")});
  ask(r1);
  now += 11s;
  auto up = claim({x("k")});
  up.instead_of = r1.owner;
  EXPECT_EQ(verdict(up), Verdict::lost);
}

TEST_F(Table, ALateCopyOfAnOldMessageCanNotUndoAnUpgrade) {
  const auto reader = claim({r("k")});
  ask(reader);
  auto up = claim({x("k")});
  up.instead_of = reader.owner;
  ask(up);
  EXPECT_EQ(verdict(reader, false), Verdict::busy);
  EXPECT_EQ(verdict(claim({r("k")}), false), Verdict::busy);
}

TEST_F(Table, ExpiredHoldersAndWaitersAreGone) {
  const auto a = claim({x("k")});
  const auto b = claim({x("k")});
  const auto c = claim({x("k")});
  ask(a);
  const auto queued = ask(b);
  EXPECT_EQ(queued.look_again, 10s) << "when the holder in the way ends";
  ask(c);
  now += 2s;
  ask(c);
  now += 2s;  // b's ticket has lapsed, c's has not
  EXPECT_EQ(ask(c).place, 0U);
  now += 7s;
  EXPECT_EQ(table.renew(a, {}, now, wakes).verdict, Verdict::lost);
  EXPECT_TRUE(table.inspect({}, now).empty());
}

TEST_F(Table, RenewNeverCreatesAndIsAllOrNothing) {
  const auto ab = claim({x("a"), x("b")});
  EXPECT_EQ(table.renew(ab, {}, now, wakes).verdict, Verdict::lost);
  ask(ab);
  auto only_b = ab;
  only_b.parts = {x("b")};
  free(only_b);
  EXPECT_EQ(table.renew(ab, {}, now, wakes).verdict, Verdict::lost);
  auto only_a = ab;
  only_a.parts = {x("a")};
  EXPECT_EQ(table.renew(only_a, {}, now, wakes).verdict, Verdict::granted);
}

TEST_F(Table, TheDeadAreStepOverHoldingOrWaiting) {
  const auto a = claim({x("k")});
  const auto b = claim({x("k")});
  const auto c = claim({x("k")});
  ask(a);
  ask(b);
  ask(c);
  dead = {a.owner, b.owner};
  EXPECT_EQ(verdict(c), Verdict::granted);
}

TEST_F(Table, WhoeverFindsADeadHolderWakesTheNextInLine) {
  const auto a = claim({x("k")});
  const auto b = claim({x("k")});
  const auto c = claim({x("k")});
  ask(a);
  ask(b);
  dead = {a.owner};
  EXPECT_EQ(verdict(c), Verdict::queued);
  EXPECT_EQ(woken(), Owners{b.owner});
}

TEST_F(Table, ADeadHolderIsNoOtherKindAndADeadRivalNoRival) {
  const auto pool = claim({s("pool", 1, 2)});
  ask(pool);
  dead = {pool.owner};
  EXPECT_EQ(verdict(claim({x("pool")}), false), Verdict::granted);
  const auto r1 = claim({r("k")});
  const auto r2 = claim({r("k")});
  ask(r1);
  ask(r2);
  auto up1 = claim({x("k")});
  up1.instead_of = r1.owner;
  auto up2 = claim({x("k")});
  up2.instead_of = r2.owner;
  EXPECT_EQ(verdict(up1), Verdict::queued);
  dead = {r1.owner, up1.owner};
  EXPECT_EQ(verdict(up2), Verdict::granted);
}

TEST_F(Table, AnIdentityThatMayPassTheQueueIsWokenBehindOneThatMayNot) {
  const auto mine = claim({r("k")}, "me");
  const auto reader = claim({r("k")});
  const auto writer = claim({x("k")});
  const auto me_too = claim({x("k")}, "me");
  ask(mine);
  ask(reader);
  ask(writer);
  EXPECT_EQ(verdict(me_too), Verdict::queued);
  free(reader);
  EXPECT_EQ(woken(), Owners{me_too.owner});
  EXPECT_EQ(verdict(me_too), Verdict::granted);
}

TEST_F(Table, AnEvictedHolderIsToldToLook) {
  const auto a = claim({x("k")});
  ask(a);
  wakes.clear();
  table.release(a, 999, now, wakes);
  EXPECT_EQ(woken(), Owners{a.owner});
}

TEST_F(Table, InspectShowsWhoHoldsAndWhoWaits) {
  const auto a = claim({x("t/k")});
  const auto b = claim({x("t/k")});
  ask(a);
  now += 1s;
  ask(b);
  const auto states = table.inspect({.resources = {"t/k"}}, now);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].holders.at(0).owner, a.owner);
  EXPECT_EQ(states[0].holders.at(0).age, 1s);
  EXPECT_EQ(states[0].holders.at(0).remaining, 9s);
  EXPECT_EQ(states[0].waiters.at(0).owner, b.owner);
  EXPECT_EQ(table.inspect({.prefix = "t"}, now).size(), 2U);
  EXPECT_TRUE(table.inspect({.resources = {"unknown"}}, now).empty());
}

}  // namespace
