// Each check is shown a history that is in order, and one for each thing that it has to find.
#include "checks/checks.hpp"

#include <gtest/gtest.h>

#include "made.hpp"

namespace torture {
namespace {

using checks::Finding;
using made::exclusive;
using made::History;
using made::kMs;
using made::shared;
using made::slots;

testing::AssertionResult clean(const Finding& finding, std::uint64_t looked_at) {
  if (!finding.violations.empty()) {
    return testing::AssertionFailure() << finding.violations.front().text;
  }
  if (finding.looked_at != looked_at) {
    return testing::AssertionFailure() << "looked at " << finding.looked_at;
  }
  return testing::AssertionSuccess();
}

/// One violation, whose text has these words, and whose events are of these kinds.
testing::AssertionResult finds(const Finding& finding, const std::string& words,
                               const std::vector<std::string>& kinds) {
  if (finding.violations.size() != 1) {
    return testing::AssertionFailure() << finding.violations.size() << " violations";
  }
  const auto& violation = finding.violations.front();
  if (violation.text.find(words) == std::string::npos) {
    return testing::AssertionFailure() << violation.text;
  }
  std::vector<std::string> found;
  for (const auto& event : violation.events) found.push_back(event.k);
  if (found != kinds) {
    return testing::AssertionFailure() << violation.text << ": " << testing::PrintToString(found);
  }
  return testing::AssertionSuccess();
}

// Exclusion.

TEST(Exclusion, OneAfterTheOtherIsInOrder) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).held(50, 90, "2.0/1", exclusive("a"));
  history.held(100, 150, "1.0/2", shared("a")).held(110, 160, "2.0/2", shared("a"));
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 4));
}

TEST(Exclusion, TwoAtOnceAreFound) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).held(49, 90, "2.0/1", exclusive("a"));
  EXPECT_TRUE(finds(history.judged_by(checks::exclusion),
                    "a is held by 1.0 exclusively by lease 1.0/1",
                    {"ask", "told", "holds", "ask", "told", "holds", "leaves", "leaves"}));
}

TEST(Exclusion, AWriterAmongReadersIsFound) {
  History history;
  history.held(10, 50, "1.0/1", shared("a")).held(49, 90, "2.0/1", exclusive("a"));
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
}

TEST(Exclusion, ALeaseEndsWithItsValidity) {
  History history;
  history.holds(10, "1.0/1", exclusive("a"), 100).holds(100, "2.0/1", exclusive("a"), 200);
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 2));
  history.add(50, "1.0", "valid", {{"lease", "1.0/1"}, {"until", 101 * kMs}});
  EXPECT_TRUE(finds(history.judged_by(checks::exclusion), "", {"holds", "valid", "holds"}));
}

TEST(Exclusion, AnybodyMayFollowALossOrAnEvictionOrAKill) {
  const std::vector<std::pair<std::string, Json>> ends{
      {"lost", {{"lease", "1.0/1"}, {"reason", ""}}},
      {"breaks", {{"r", "a"}, {"owner", "owner of 1.0/1"}}},
      {"killed", {{"worker", "1.0"}}},
  };
  for (const auto& [kind, fields] : ends) {
    History history;
    history.holds(10, "1.0/1", exclusive("a"), 100).holds(30, "2.0/1", exclusive("a"), 200);
    EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
    history.add(30, kind == "lost" ? "1.0" : "", kind, fields);
    EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 2)) << kind;
  }
}

TEST(Exclusion, OneThatIsToldAfterItsEvictionHoldsNothing) {
  History history;
  history.add(5, "", "breaks", {{"r", "a"}, {"owner", "owner of 1.0/1"}});
  history.holds(10, "1.0/1", exclusive("a"), 100).holds(30, "2.0/1", exclusive("a"), 200);
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 2));
}

// A replica took over between two looks at the servers. What was granted before or after both looks is no excuse.
TEST(Exclusion, AFailoverThatWasSeenExcusesWhatItMayExplain) {
  const auto with_failover = [](std::int64_t from, std::int64_t to) {
    History history;
    history.holds(10, "1.0/1", exclusive("a"), 1000).holds(500, "2.0/1", exclusive("a"), 2000);
    history.add(to, "", "fault", {{"n", 1}, {"from", from * kMs}, {"voids", true}});
    history.add(to, "", "healed", {{"n", 1}});
    return history.judged_by(checks::exclusion);
  };
  EXPECT_EQ(with_failover(400, 550).allowed, 1U);
  EXPECT_EQ(with_failover(510, 610).violations.size(), 1U);
}

TEST(Exclusion, ADowngradeLetsReadersIn) {
  History history;
  history.holds(10, "1.0/1", exclusive("a"), 200)
      .leaves(20, "1.0/1", "a")
      .holds(25, "1.0/1", shared("a"), 200)
      .holds(30, "2.0/1", shared("a"), 200);
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 3));
  history.holds(40, "1.0/1", exclusive("a"), 200);  // upgraded in spite of the reader
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
}

TEST(Exclusion, APartialReleaseKeepsTheRest) {
  History history;
  history.holds(10, "1.0/1", exclusive("a"), 200).holds(10, "1.0/1", exclusive("b"), 200);
  history.leaves(20, "1.0/1", "a").holds(30, "2.0/1", exclusive("a"), 200);
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 3));
  history.holds(30, "2.0/2", exclusive("b"), 200);
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
}

TEST(Exclusion, SlotsAddUpToTheCapacity) {
  History history;
  history.held(10, 50, "1.0/1", slots("s", 2, 3)).held(20, 60, "2.0/1", slots("s", 1, 3));
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 2));
  history.held(40, 70, "3.0/1", slots("s", 1, 3));
  const auto finding = history.judged_by(checks::exclusion);
  ASSERT_EQ(finding.violations.size(), 1U);
  EXPECT_EQ(finding.violations.front().text.substr(0, 31), "4 of the 3 slots of s are held ");
}

TEST(Exclusion, AnotherKindOrCapacityIsFound) {
  History history;
  history.held(10, 50, "1.0/1", slots("s", 1, 3)).held(20, 60, "2.0/1", slots("s", 1, 4));
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
  history.held(100, 150, "1.0/2", slots("s", 1, 3)).held(120, 160, "2.0/2", shared("s"));
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 2U);
}

TEST(Exclusion, AHierarchyHoldsWhatIsAbove) {
  const Json hierarchy{{"hierarchy", true}};
  History history;
  history.held(10, 50, "1.0/1", exclusive("a/b/c"), 0, hierarchy)
      .held(20, 60, "2.0/1", exclusive("a/b/d"), 0, hierarchy)
      .held(20, 60, "2.0/2", shared("a"), 0, hierarchy)
      .held(20, 60, "3.0/1", exclusive("a/b/c"), 0, hierarchy);
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
  history.held(30, 50, "4.0/1", exclusive("a"), 0, hierarchy);
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U + 4U);

  History flat;
  flat.held(10, 50, "1.0/1", exclusive("a/b")).held(20, 60, "2.0/1", exclusive("a"));
  EXPECT_TRUE(clean(flat.judged_by(checks::exclusion), 2));
}

TEST(Exclusion, OneIdentityAndOneOwnerAreOneHolder) {
  const Json ann{{"identity", "Ann"}};
  History history;
  history.held(10, 50, "1.0/1", exclusive("a"), 0, ann, ann)
      .held(20, 60, "2.0/1", exclusive("a"), 0, ann, ann);
  history.holds(110, "1.0/2", exclusive("a"), 200)
      .holds(120, "2.0/2", exclusive("a"), 200, 0,
             {{"owner", "owner of 1.0/2"}, {"adopted", true}});
  EXPECT_TRUE(clean(history.judged_by(checks::exclusion), 4));
  history.held(40, 45, "3.0/1", exclusive("a"), 0, {{"identity", "Bob"}}, {{"identity", "Bob"}});
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 2U);
}

TEST(Exclusion, AFaultThatVoidsThePromiseAllowsAConflict) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).held(40, 90, "2.0/1", exclusive("a"));
  auto harmless = history;
  harmless.fault(20, 30, false);
  EXPECT_EQ(harmless.judged_by(checks::exclusion).violations.size(), 1U);
  auto late = history;
  late.fault(41, 45, true);
  EXPECT_EQ(late.judged_by(checks::exclusion).violations.size(), 1U);
  history.fault(20, 30, true);
  const auto finding = history.judged_by(checks::exclusion);
  EXPECT_TRUE(clean(finding, 2));
  EXPECT_EQ(finding.allowed, 1U);
  // Granted when the fault was long over.
  history.held(9010, 9050, "1.0/2", exclusive("a")).held(9040, 9090, "2.0/2", exclusive("a"));
  EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), 1U);
}

// Fences.

TEST(Fences, ThatRiseAreInOrder) {
  History history;
  history.held(10, 20, "1.0/1", exclusive("a"), 5).held(30, 40, "2.0/1", exclusive("a"), 6);
  history.held(10, 20, "1.0/2", exclusive("b"), 9).held(30, 40, "2.0/2", exclusive("b"), 12);
  history.held(50, 60, "2.0/3", shared("a"), 3);
  EXPECT_TRUE(clean(history.judged_by(checks::fences), 4));
}

TEST(Fences, ThatFallAreFoundEvenAcrossALossOfData) {
  History history;
  history.held(10, 20, "1.0/1", exclusive("a"), 5).held(30, 40, "2.0/1", exclusive("a"), 4);
  history.fault(21, 25, true);
  EXPECT_TRUE(finds(history.judged_by(checks::fences), "the fence of a went back: 5 of lease 1.0/1",
                    {"holds", "holds"}));
}

TEST(Fences, OfGrantsThatWereUnderWayTogetherMayComeInAnyOrder) {
  History history;
  history.ask(10, "1.0/1", exclusive("a")).ask(11, "2.0/1", exclusive("a"));
  history.holds(20, "1.0/1", exclusive("a"), 25, 8).holds(40, "2.0/1", exclusive("a"), 50, 7);
  EXPECT_TRUE(clean(history.judged_by(checks::fences), 2));
}

TEST(Fences, ThatAreEqualAreFound) {
  History history;
  history.held(10, 20, "1.0/1", exclusive("a"), 5).held(30, 40, "2.0/1", exclusive("a"), 5);
  EXPECT_TRUE(finds(history.judged_by(checks::fences), "two grants of a have one fence",
                    {"holds", "holds"}));
}

TEST(Fences, OfOneIdentityOrAnAdoptedLeaseAreShared) {
  History history;
  history.held(10, 60, "1.0/1", exclusive("a"), 5, Json::object(), {{"identity", "Ann"}})
      .held(30, 40, "2.0/1", exclusive("a"), 5, Json::object(), {{"identity", "Ann"}});
  history.held(10, 20, "1.0/2", exclusive("b"), 7).held(30, 40, "2.0/2", exclusive("b"), 8);
  history.held(50, 60, "3.0/2", exclusive("b"), 7, Json::object(), {{"adopted", true}});
  EXPECT_TRUE(clean(history.judged_by(checks::fences), 4));
}

// The register.

Json write(int fence, int seen, const std::string& answer = "yes", bool fenced = true) {
  return {{"lease", "1.0/1"}, {"r", "a"},          {"fence", fence},  {"fenced", fenced},
          {"seen", seen},     {"wrote", seen + 1}, {"answer", answer}};
}

TEST(Register, ThatLosesNothingIsInOrder) {
  History history;
  history.add(1, "", "writes", write(5, 0)).add(2, "", "writes", write(6, 1));
  history.add(3, "", "writes", write(5, 1, "refused")).add(4, "", "writes", write(6, 2));
  history.add(9, "", "register", {{"r", "a"}, {"fenced", true}, {"value", 3}});
  EXPECT_TRUE(clean(history.judged_by(checks::registers), 4));
}

TEST(Register, ThatTakesAStaleWriteIsFound) {
  History history;
  history.add(1, "", "writes", write(6, 0)).add(2, "", "writes", write(5, 1));
  EXPECT_TRUE(
      finds(history.judged_by(checks::registers), "took a stale write", {"writes", "writes"}));
}

TEST(Register, ThatLosesAnUpdateIsFound) {
  History history;
  history.add(1, "", "writes", write(5, 0)).add(2, "", "writes", write(6, 0));
  const auto finding = history.judged_by(checks::registers);
  EXPECT_TRUE(finds(finding, "had seen 0 when it stood at 1", {"writes", "writes"}));
  EXPECT_EQ(finding.figures.at("lost updates with fence"), 1);
}

TEST(Register, ThatStandsElsewhereIsFound) {
  History history;
  history.add(1, "", "writes", write(5, 0)).add(2, "", "writes", write(6, 1, "unknown"));
  history.add(9, "", "register", {{"r", "a"}, {"fenced", true}, {"value", 2}});
  EXPECT_TRUE(clean(history.judged_by(checks::registers), 2));
  history.add(9, "", "register", {{"r", "a"}, {"fenced", true}, {"value", 3}});
  EXPECT_EQ(history.judged_by(checks::registers).violations.size(), 1U);
}

TEST(Register, AWriteWhoseAnswerWasLostMayHaveBeenDone) {
  History history;
  history.add(1, "", "writes", write(5, 0)).add(2, "", "writes", write(6, 1, "unknown"));
  history.add(3, "", "writes", write(7, 2));
  EXPECT_TRUE(clean(history.judged_by(checks::registers), 3));
}

TEST(Register, WithoutFencesLostUpdatesAreAFigure) {
  History history;
  history.add(1, "", "writes", write(6, 0, "yes", false))
      .add(2, "", "writes", write(5, 0, "yes", false));
  const auto finding = history.judged_by(checks::registers);
  EXPECT_TRUE(clean(finding, 2));
  EXPECT_EQ(finding.figures.at("lost updates without fence"), 1);
}

// Told once.

TEST(ToldOnce, EachCallOfAnOrderlyWorkerHasOneAnswer) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).add(60, "1.0", "end");
  history.ask(10, "2.0/1", exclusive("a")).add(60, "", "killed", {{"worker", "2.0"}});
  EXPECT_TRUE(clean(history.judged_by(checks::told_once), 2));
}

TEST(ToldOnce, TwoAnswersAreFound) {
  History history;
  history.ask(10, "1.0/1", exclusive("a"))
      .told(11, "1.0/1", "granted")
      .told(20, "1.0/1", "timed_out");
  EXPECT_TRUE(finds(history.judged_by(checks::told_once), "granted, and timed_out",
                    {"ask", "told", "told"}));
}

TEST(ToldOnce, AnAnswerThatNobodyAskedForIsFound) {
  History history;
  history.told(11, "1.0/1", "granted");
  EXPECT_TRUE(finds(history.judged_by(checks::told_once), "nobody asked", {"told"}));
}

TEST(ToldOnce, ACallThatWasForgottenIsFound) {
  History history;
  history.ask(10, "1.0/1", exclusive("a")).add(60, "1.0", "end");
  EXPECT_TRUE(finds(history.judged_by(checks::told_once), "was not answered", {"ask", "end"}));
}

TEST(ToldOnce, TwoLossesAreFound) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a"));
  history.add(20, "1.0", "lost", {{"lease", "1.0/1"}}).add(30, "1.0", "lost", {{"lease", "1.0/1"}});
  EXPECT_TRUE(finds(history.judged_by(checks::told_once), "2 times", {"lost", "lost"}));
}

TEST(ToldOnce, ALossAfterTheReleaseIsFound) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).add(60, "1.0", "lost", {{"lease", "1.0/1"}});
  EXPECT_TRUE(
      finds(history.judged_by(checks::told_once), "after its release", {"ask", "told", "lost"}));
  history.add(55, "1.0", "stall", {{"from", 49 * kMs}});
  EXPECT_TRUE(history.judged_by(checks::told_once).violations.empty());
}

// Answers.

const Json kOnce{{"form", "once"}};
const Json kBounded{{"form", "bounded"}, {"limit", 500 * kMs}};
const Json kTries{{"form", "tries"}, {"tries", 3}};

TEST(Answers, ThatAreTrueAreInOrder) {
  History history;
  history.held(10, 900, "1.0/1", exclusive("a"));
  history.ask(20, "2.0/1", exclusive("a"), kOnce).told(21, "2.0/1", "busy");
  history.ask(20, "2.0/2", exclusive("a"), kBounded).told(518, "2.0/2", "timed_out");
  history.ask(20, "2.0/3", exclusive("a"), kTries).told(300, "2.0/3", "exhausted");
  history.ask(20, "2.0/4", exclusive("a")).add(300, "2.0", "cancel", {{"op", "2.0/4"}});
  history.told(301, "2.0/4", "cancelled");
  EXPECT_TRUE(clean(history.judged_by(checks::answers), 6));
}

TEST(Answers, OfAnotherFormAreFound) {
  const std::vector<std::pair<Json, std::string>> wrong{
      {Json::object(), "busy"}, {kOnce, "timed_out"},    {kBounded, "busy"},
      {kTries, "timed_out"},    {kBounded, "exhausted"}, {kOnce, "cancelled and busy"}};
  for (const auto& [form, answer] : wrong) {
    History history;
    history.held(10, 900, "1.0/1", exclusive("a"));
    history.ask(20, "2.0/1", exclusive("a"), form).told(800, "2.0/1", answer);
    EXPECT_TRUE(finds(history.judged_by(checks::answers), "which its kind of call never is",
                      {"ask", "told"}))
        << answer;
  }
}

TEST(Answers, TimedOutBeforeTheLimitIsFound) {
  History history;
  history.held(10, 900, "1.0/1", exclusive("a"));
  history.ask(20, "2.0/2", exclusive("a"), kBounded).told(514, "2.0/2", "timed_out");
  EXPECT_TRUE(finds(history.judged_by(checks::answers), "timed out after 494ms", {"ask", "told"}));
}

TEST(Answers, CancelledByNobodyIsFound) {
  History history;
  history.ask(20, "2.0/4", exclusive("a")).told(301, "2.0/4", "cancelled");
  history.add(302, "2.0", "cancel", {{"op", "2.0/4"}});
  EXPECT_TRUE(finds(history.judged_by(checks::answers), "nobody had cancelled it",
                    {"ask", "told", "cancel"}));
}

TEST(Answers, UnreachableWithoutAFaultIsFound) {
  History history;
  history.ask(20'000, "1.0/1", exclusive("a")).failed(20'100, "1.0/1", "unreachable");
  EXPECT_TRUE(
      finds(history.judged_by(checks::answers), "nothing disturbed the store", {"ask", "told"}));
  auto before = history;
  before.fault(8000, 9999, false);
  EXPECT_EQ(before.judged_by(checks::answers).violations.size(), 1U);
  auto harmless = history;
  harmless.fault(15'000, 30'000, false, false);
  EXPECT_EQ(harmless.judged_by(checks::answers).violations.size(), 1U);
  history.fault(8000, 10'001, false);
  EXPECT_TRUE(clean(history.judged_by(checks::answers), 1));
}

TEST(Answers, UnreachableAfterALongStallIsInOrder) {
  History history;
  history.ask(20, "1.0/1", exclusive("a")).failed(9000, "1.0/1", "unreachable");
  history.add(30, "", "stopped", {{"worker", "1.0"}})
      .add(8000, "", "continued", {{"worker", "1.0"}});
  EXPECT_TRUE(clean(history.judged_by(checks::answers), 1));
}

TEST(Answers, AFailureThatNothingExplainsIsFound) {
  for (const auto* errc : {"invalid", "wrong_kind", "forked", "deadlock", "unsupported", "lost"}) {
    History history;
    history.ask(20, "1.0/1", exclusive("a")).failed(30, "1.0/1", errc);
    EXPECT_TRUE(finds(history.judged_by(checks::answers), errc, {"ask", "told"}));
  }
  History history;
  history.ask(10, "1.0/1", exclusive("a"))
      .told(11, "1.0/1", "granted")
      .holds(12, "1.0/1", exclusive("a"), 500);
  history.ask(20, "1.0/2", exclusive("b")).failed(30, "1.0/2", "deadlock");
  history.ask(20, "1.0/3", slots("s", 1, 2)).failed(30, "1.0/3", "unsupported");
  history.verb(20, "1.0/4", "fork", "").failed(30, "1.0/4", "forked");
  history.verb(20, "1.0/5", "extend", "1.0/1").failed(30, "1.0/5", "lost");
  EXPECT_TRUE(clean(history.judged_by(checks::answers), 5));
}

TEST(Answers, AnAcquireIsLostOnlyIfItsResourceWasBrokenMeanwhile) {
  const auto lost_after_break_of = [](const char* resource) {
    History history;
    history.ask(20, "1.0/1", exclusive("a"));
    history.add(25, "2.0", "breaks", {{"r", resource}, {"owner", "of 1.0/1"}});
    history.failed(30, "1.0/1", "lost");
    return history;
  };
  EXPECT_TRUE(clean(lost_after_break_of("a").judged_by(checks::answers), 1));
  EXPECT_FALSE(lost_after_break_of("b").judged_by(checks::answers).violations.empty());
}

TEST(Answers, BusyWithNobodyThereIsFound) {
  const std::vector<std::pair<Json, std::string>> calls{
      {kOnce, "busy"}, {kBounded, "timed_out"}, {kTries, "exhausted"}};
  for (const auto& [form, answer] : calls) {
    History history;
    history.held(10, 50, "1.0/1", exclusive("a")).held(10, 9000, "1.0/2", exclusive("b"));
    history.held(10, 9000, "1.0/3", shared("r"))
        .held(10, 9000, "1.0/4", exclusive("x"), 0, {{"identity", "Ann"}});
    history.ask(60, "2.0/1", exclusive("a"), form).told(800, "2.0/1", answer);
    history.ask(60, "2.0/2", shared("r"), form).told(800, "2.0/2", answer);
    auto ann = form;
    ann["identity"] = "Ann";
    history.ask(60, "2.0/3", exclusive("x"), ann).told(800, "2.0/3", answer);
    const auto finding = history.judged_by(checks::answers);
    EXPECT_EQ(finding.violations.size(), 3U) << answer;
    for (const auto& violation : finding.violations) {
      EXPECT_NE(violation.text.find("nobody can have held"), std::string::npos) << violation.text;
    }
  }
}

TEST(Answers, WhoMayStillBeThereExplainsBusy) {
  const auto busy = [](History history) {
    history.ask(50'000, "9.0/1", exclusive("a/b"), {{"form", "once"}, {"hierarchy", true}});
    history.told(50'001, "9.0/1", "busy");
    return history.judged_by(checks::answers).violations.size();
  };
  History none;
  EXPECT_EQ(busy(none), 1U);
  History waiting;
  waiting.ask(10, "1.0/1", exclusive("a"));
  EXPECT_EQ(busy(waiting), 0U);
  History upgrading;
  upgrading.ask(10, "1.0/1", shared("a/b")).told(11, "1.0/1", "granted");
  upgrading.holds(12, "1.0/1", shared("a/b"), 90'000).verb(13, "1.0/2", "upgrade_for", "1.0/1");
  EXPECT_EQ(busy(upgrading), 0U);
  History killed;
  killed.ask(10, "1.0/1", exclusive("a")).add(20, "", "killed", {{"worker", "1.0"}});
  EXPECT_EQ(busy(killed), 0U);
  History adopted;
  adopted.verb(10, "1.0/1", "adopt", "1.0/1").told(11, "1.0/1", "yes");
  adopted.holds(12, "1.0/1", exclusive("a/b"), 90'000, 0, {{"adopted", true}});
  EXPECT_EQ(busy(adopted), 0U);
  History failed;
  failed.ask(10, "1.0/1", exclusive("a")).failed(20, "1.0/1", "unreachable").fault(5, 30, false);
  EXPECT_EQ(busy(failed), 0U);
  History cancelled;
  cancelled.ask(10, "1.0/1", exclusive("a")).add(20, "1.0", "cancel", {{"op", "1.0/1"}});
  cancelled.told(21, "1.0/1", "cancelled");
  EXPECT_EQ(busy(cancelled), 1U);
}

TEST(Answers, BusyIsInOrderWhereAClaimMayHaveComeBack) {
  for (const bool brings_back : {true, false}) {
    History history;
    history.fault(10, 20, false, true, brings_back);
    history.ask(50, "1.0/1", exclusive("a"), kOnce).told(51, "1.0/1", "busy");
    EXPECT_EQ(history.judged_by(checks::answers).violations.size(), brings_back ? 0U : 1U);
  }
}

TEST(Answers, ALimitThatIsOverBeforeAnAnswerCanComeSaysNothing) {
  for (const auto limit : {1 * kMs, 300 * kMs}) {
    History history;
    history.ask(10, "1.0/1", shared("a"), {{"form", "bounded"}, {"limit", limit}})
        .told(400, "1.0/1", "timed_out");
    history.ask(410, "1.0/2", shared("b"))
        .told(411, "1.0/2", "granted")
        .holds(412, "1.0/2", shared("b"), 900);
    history.verb(420, "1.0/3", "upgrade_for", "1.0/2", {{"limit", limit}});
    history.told(800, "1.0/3", "no");
    const auto expected = limit < 250 * kMs ? 0U : 2U;
    EXPECT_EQ(history.judged_by(checks::answers).violations.size(), expected) << limit;
  }
}

TEST(Answers, AnUpgradeMayHaveToSettleUntilItsLimitIsOver) {
  for (const bool disturbed : {true, false}) {
    History history;
    if (disturbed) history.fault(5, 900, false);
    history.ask(10, "1.0/1", shared("b")).told(11, "1.0/1", "granted");
    history.holds(12, "1.0/1", shared("b"), 2000);
    history.verb(620, "1.0/2", "upgrade_for", "1.0/1", {{"limit", 300 * kMs}});
    history.told(930, "1.0/2", "no");
    history.ask(620, "1.0/3", shared("a"), kBounded).told(1200, "1.0/3", "timed_out");
    EXPECT_EQ(history.judged_by(checks::answers).violations.size(), disturbed ? 1U : 2U);
  }
}

TEST(Answers, ARefusedUpgradeNeedsAnotherReader) {
  History history;
  history.ask(10, "1.0/1", shared("a"))
      .told(11, "1.0/1", "granted")
      .holds(12, "1.0/1", shared("a"), 900);
  history.verb(20, "1.0/2", "upgrade", "1.0/1").told(21, "1.0/2", "no");
  EXPECT_TRUE(finds(history.judged_by(checks::answers), "nobody can have held", {"ask", "told"}));
  history.held(15, 30, "2.0/1", shared("a"));
  EXPECT_TRUE(history.judged_by(checks::answers).violations.empty());
}

// Order.

History two_waiters(std::int64_t granted_first, std::int64_t granted_second) {
  History history;
  history.ask(1000, "1.0/1", exclusive("a")).told(granted_first, "1.0/1", "granted");
  history.ask(2100, "2.0/1", exclusive("a")).told(granted_second, "2.0/1", "granted");
  return history;
}

TEST(Order, FirstComeFirstServed) {
  EXPECT_TRUE(clean(two_waiters(5000, 6000).judged_by(checks::order), 1));
  EXPECT_TRUE(clean(two_waiters(5000, 4800).judged_by(checks::order), 1));
}

TEST(Order, OvertakingIsFound) {
  EXPECT_TRUE(finds(two_waiters(5000, 4700).judged_by(checks::order),
                    "2.0/1 was granted a 300ms before 1.0/1", {"ask", "ask", "told", "told"}));
  History starved;
  starved.ask(1000, "1.0/1", exclusive("a"), {{"form", "bounded"}, {"limit", 4000 * kMs}});
  starved.told(5000, "1.0/1", "timed_out").ask(2100, "2.0/1", exclusive("a"));
  starved.told(4000, "2.0/1", "granted");
  EXPECT_TRUE(
      finds(starved.judged_by(checks::order), "its time is over", {"ask", "ask", "told", "told"}));
}

TEST(Order, IsNotExpectedOfOthers) {
  auto faulty = two_waiters(5000, 4700);
  faulty.fault(2500, 2600, false);
  EXPECT_TRUE(clean(faulty.judged_by(checks::order), 0));
  auto stalled = two_waiters(5000, 4700);
  stalled.add(2600, "1.0", "stall", {{"from", 2500 * kMs}});
  EXPECT_EQ(stalled.judged_by(checks::order).violations.size(), 1U);
  stalled.add(3000, "1.0", "stall", {{"from", 2800 * kMs}});
  EXPECT_TRUE(clean(stalled.judged_by(checks::order), 0));
  auto cancelled = two_waiters(5000, 4700);
  cancelled.add(4900, "1.0", "cancel", {{"op", "1.0/1"}});
  EXPECT_TRUE(clean(cancelled.judged_by(checks::order), 0));
  History urgent;
  urgent.ask(1000, "1.0/1", exclusive("a")).told(5000, "1.0/1", "granted");
  urgent.ask(2100, "2.0/1", exclusive("a"), {{"priority", 1}}).told(4000, "2.0/1", "granted");
  urgent.ask(2100, "2.0/2", exclusive("b")).told(4000, "2.0/2", "granted");
  urgent.ask(1900, "2.0/3", exclusive("a")).told(4000, "2.0/3", "granted");
  EXPECT_TRUE(urgent.judged_by(checks::order).violations.empty());
}

// Ends.

TEST(Ends, AWaitWithALimitEnds) {
  History history;
  history.ask(10, "1.0/1", exclusive("a"), kBounded).told(6500, "1.0/1", "timed_out");
  history.ask(10, "1.0/2", exclusive("a")).told(90'000, "1.0/2", "granted");
  EXPECT_TRUE(clean(history.judged_by(checks::ends), 1));
}

TEST(Ends, ALateEndIsFound) {
  History history;
  history.ask(10, "1.0/1", exclusive("a"), kBounded).told(6520, "1.0/1", "timed_out");
  EXPECT_TRUE(finds(history.judged_by(checks::ends), "its limit was 500ms", {"ask", "told"}));
  history.add(600, "1.0", "stall", {{"from", 500 * kMs}});
  EXPECT_TRUE(history.judged_by(checks::ends).violations.empty());
}

TEST(Ends, ASlowReleaseIsFound) {
  History history;
  history.verb(10, "1.0/2", "release", "1.0/1").told(60'011, "1.0/2", "released");
  EXPECT_TRUE(finds(history.judged_by(checks::ends), "nothing to wait for", {"ask", "told"}));
}

TEST(Ends, AWaitWithoutEndIsFound) {
  History history;
  history.add(1, "1.0", "start").ask(10, "1.0/1", exclusive("a"));
  EXPECT_TRUE(history.judged_by(checks::ends).violations.empty());
  history.add(900, "", "calm");
  EXPECT_TRUE(finds(history.judged_by(checks::ends), "has never ended", {"ask"}));
  history.add(950, "", "killed", {{"worker", "1.0"}});
  EXPECT_TRUE(history.judged_by(checks::ends).violations.empty());
}

TEST(Ends, AWorkerThatHangsOrCrashesIsFound) {
  History hung;
  hung.add(900, "", "hung", {{"worker", "1.0"}});
  EXPECT_TRUE(finds(hung.judged_by(checks::ends), "worker 1.0 did not end", {"hung"}));
  History crashed;
  crashed.add(900, "", "crashed", {{"worker", "1.0"}, {"status", 11}});
  EXPECT_TRUE(finds(crashed.judged_by(checks::ends), "status 11", {"crashed"}));
}

// Recovery.

Json probe(const std::string& answer, std::int64_t took) {
  return {{"r", "a"}, {"within", 7000 * kMs}, {"answer", answer}, {"took", took * kMs}};
}

TEST(Recovery, SomebodyIsGrantedSoon) {
  History history;
  history.add(9000, "", "probe", probe("granted", 6900));
  EXPECT_TRUE(clean(history.judged_by(checks::recovery), 1));
}

TEST(Recovery, TooLateOrNeverIsFound) {
  History late;
  late.add(9000, "", "probe", probe("granted", 7100));
  EXPECT_TRUE(finds(late.judged_by(checks::recovery), "within 7s", {"probe"}));
  History never;
  never.add(9000, "", "probe", probe("timed_out", 7000));
  EXPECT_TRUE(finds(never.judged_by(checks::recovery), "\"timed_out\"", {"probe"}));
}

// Losses.

History lost_lease(const Json& asked = Json::object()) {
  History history;
  history.ask(20'000, "1.0/1", exclusive("a"), asked).told(20'001, "1.0/1", "granted");
  history.holds(20'002, "1.0/1", exclusive("a"), 23'000);
  history.add(21'000, "1.0", "valid", {{"lease", "1.0/1"}, {"until", 24'000 * kMs}});
  history.add(24'000, "1.0", "lost", {{"lease", "1.0/1"}, {"reason", "nobody answered"}});
  return history;
}

TEST(Losses, AReleasedLeaseIsInOrder) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a"));
  EXPECT_TRUE(clean(history.judged_by(checks::losses), 1));
}

TEST(Losses, ALossForNoReasonIsFound) {
  EXPECT_TRUE(
      finds(lost_lease().judged_by(checks::losses), "nobody answered", {"holds", "valid", "lost"}));
  History answered;
  answered.holds(20'002, "1.0/1", exclusive("a"), 23'000).release(20'500, "1.0/1", "lost");
  EXPECT_TRUE(finds(answered.judged_by(checks::losses), "was lost", {"holds", "told"}));
  History refused;
  refused.holds(20'002, "1.0/1", exclusive("a"), 23'000).verb(20'500, "1.0/2", "extend", "1.0/1");
  refused.told(20'501, "1.0/2", "no");
  EXPECT_TRUE(finds(refused.judged_by(checks::losses), "was lost", {"holds", "told"}));
}

TEST(Losses, AReasonIsEnough) {
  auto faulty = lost_lease();
  faulty.fault(18'100, 18'200, false);
  EXPECT_TRUE(clean(faulty.judged_by(checks::losses), 1));
  auto stalled = lost_lease();
  stalled.add(22'000, "1.0", "stall", {{"from", 21'500 * kMs}});
  EXPECT_TRUE(clean(stalled.judged_by(checks::losses), 1));
  auto standstill = lost_lease();
  standstill.add(18'400, "", "stall", {{"from", 18'000 * kMs}});
  EXPECT_TRUE(clean(standstill.judged_by(checks::losses), 1));
  auto short_one = lost_lease();
  short_one.add(18'300, "", "stall", {{"from", 18'000 * kMs}});
  EXPECT_FALSE(short_one.judged_by(checks::losses).violations.empty());
  auto stopped = lost_lease();
  stopped.add(22'000, "", "stopped", {{"worker", "1.0"}});
  EXPECT_TRUE(clean(stopped.judged_by(checks::losses), 1));
  auto broken = lost_lease();
  broken.add(22'000, "2.0", "breaks", {{"r", "a"}, {"owner", "owner of 1.0/1"}});
  EXPECT_TRUE(clean(broken.judged_by(checks::losses), 1));
  EXPECT_TRUE(clean(lost_lease({{"renew", false}}).judged_by(checks::losses), 1));
  auto another = lost_lease();
  another.add(22'000, "2.0", "stall", {{"from", 21'500 * kMs}});
  another.add(22'000, "2.0", "breaks", {{"r", "a"}, {"owner", "owner of 2.0/1"}});
  another.fault(1000, 2000, false);
  EXPECT_EQ(another.judged_by(checks::losses).violations.size(), 1U);
}

// Figures.

Json measured(const char* when, int threads, int descriptors, std::int64_t memory,
              std::int64_t cpu) {
  return {{"when", when},
          {"threads", threads},
          {"descriptors", descriptors},
          {"memory", memory << 20},
          {"cpu", cpu * kMs}};
}

TEST(Figures, ThatComeBackAreInOrder) {
  History history;
  history.add(10, "1.0", "figures", measured("begin", 5, 10, 20, 3));
  history.add(1000, "1.0", "figures", measured("end", 90, 90, 90, 500));
  history.add(2000, "1.0", "figures", measured("idle", 6, 12, 30, 540));
  history.add(10, "2.0", "figures", measured("begin", 5, 10, 20, 3));  // and was killed
  EXPECT_TRUE(clean(history.judged_by(checks::figures), 1));
}

TEST(Figures, ThatGrowAreFound) {
  const std::vector<std::pair<std::string, Json>> grown{
      {"threads", measured("idle", 14, 10, 20, 500)},
      {"descriptors", measured("idle", 5, 19, 20, 500)},
      {"memory", measured("idle", 5, 10, 53, 500)},
  };
  for (const auto& [what, idle] : grown) {
    History history;
    history.add(10, "1.0", "figures", measured("begin", 5, 10, 20, 3));
    history.add(1000, "1.0", "figures", measured("end", 5, 10, 20, 500));
    history.add(2000, "1.0", "figures", idle);
    EXPECT_TRUE(
        finds(history.judged_by(checks::figures), "began with " + what, {"figures", "figures"}));
  }
}

TEST(Figures, AThreadThatSpinsIsFound) {
  History history;
  history.add(10, "1.0", "figures", measured("begin", 5, 10, 20, 3));
  history.add(1000, "1.0", "figures", measured("end", 5, 10, 20, 500));
  history.add(2000, "1.0", "figures", measured("idle", 5, 10, 20, 551));
  EXPECT_TRUE(finds(history.judged_by(checks::figures), "used the processor for 51ms",
                    {"figures", "figures"}));
}

// Left behind.

TEST(Exclusion, ABreakMayMeetAnOwnerThatTheLeaseDoesNotKnowYet) {
  for (const bool changes : {true, false}) {
    History history;
    history.ask(10, "1.0/1", shared("a")).told(11, "1.0/1", "granted");
    history.holds(12, "1.0/1", shared("a"), 900);
    if (changes) history.verb(20, "1.0/2", "upgrade_for", "1.0/1");
    history.add(30, "2.0", "breaks", {{"r", "a"}, {"owner", "nobody knows"}});
    history.ask(31, "2.0/1", exclusive("a")).told(32, "2.0/1", "granted");
    history.holds(33, "2.0/1", exclusive("a"), 900);
    EXPECT_EQ(history.judged_by(checks::exclusion).violations.size(), changes ? 0U : 1U);
  }
}

TEST(Left, NothingIsInOrder) {
  History history;
  history.add(100, "", "calm");
  EXPECT_TRUE(clean(history.judged_by(checks::left), 1));
}

TEST(Left, WhatTheStoreStillShowsIsFound) {
  History history;
  history.add(100, "", "calm").add(200, "", "left", {{"what", "a is held by 1.0"}});
  EXPECT_TRUE(finds(history.judged_by(checks::left), "a is held by 1.0", {"left"}));
}

TEST(Left, WhatAWorkerLeftIsAllowedIfTheStoreMayHaveBroughtItBack) {
  for (const bool brings_back : {true, false}) {
    History history;
    history.fault(10, 20, false, true, brings_back).add(100, "", "calm");
    history.add(200, "1.0", "left", {{"what", "a, held by worker 1.0"}});
    const auto finding = history.judged_by(checks::left);
    EXPECT_EQ(finding.allowed, brings_back ? 1U : 0U);
    EXPECT_EQ(finding.violations.size(), brings_back ? 0U : 1U);
  }
}

// All of them.

TEST(Check, EachCheckHasAName) {
  History history;
  history.held(10, 50, "1.0/1", exclusive("a")).held(49, 90, "2.0/1", exclusive("a"));
  const auto events = history.events();
  std::vector<std::string> names;
  std::size_t violations = 0;
  for (const auto& finding : checks::check(checks::Index(events))) {
    names.push_back(finding.name);
    violations += finding.violations.size();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"exclusion", "fences", "register", "told once",
                                             "answers", "order", "ends", "recovery", "losses",
                                             "left behind", "figures"}));
  EXPECT_EQ(violations, 1U);
}

}  // namespace
}  // namespace torture
