// Leaders and workers that are stopped, killed, and end in order.
#include "process/child.hpp"

namespace interlock::process {
namespace {

class Recipes : public ProcessTest {
 protected:
  [[nodiscard]] Child candidate(const std::string& ttl = "600s") const {
    return Child("candidate", {url(), "orders", ttl});
  }
  [[nodiscard]] Child queued_candidate() const {
    const auto before = waiters("leader:orders");
    auto child = candidate();
    EXPECT_TRUE(eventually([&] { return waiters("leader:orders") > before; }));
    return child;
  }
  static std::uint64_t term(Child& child) {
    const auto text = child.after("leads ");
    return text.empty() ? 0 : std::stoull(text);
  }
};

TEST_F(Recipes, ALeaderThatWasStoppedPastItsTtlKnowsItWhenItWakesAndStandsAgain) {
  auto first = candidate("2s");
  const auto old_term = term(first);
  EXPECT_GT(old_term, 0U);
  auto second = queued_candidate();
  first.signal(SIGSTOP);
  EXPECT_GT(term(second), old_term);
  // The very first thing that it does when it wakes is to look.
  first.tell("leader");
  first.signal(SIGCONT);
  EXPECT_EQ(first.after("leader "), "no");
  EXPECT_EQ(second.ask("leader", "leader "), "yes");
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; })) << "it stands again";
  second.tell("exit");
  EXPECT_GT(term(first), old_term);
}

TEST_F(Recipes, ALeaderThatEndsInOrderHandsOver) {
  auto first = candidate();
  EXPECT_GT(term(first), 0U);
  auto second = queued_candidate();
  first.tell("exit");
  EXPECT_EQ(first.after("over "), "it resigned");
  EXPECT_GT(term(second), 0U) << "and not after 600s";
  EXPECT_EQ(first.wait(), 0);
}

TEST_F(Recipes, ALeaderThatIsKilledIsSucceeded) {
  auto first = candidate();
  const auto old_term = term(first);
  auto second = queued_candidate();
  first.kill();
  EXPECT_GT(term(second), old_term);
}

TEST_F(Recipes, AForkedChildLeadsNothingAndItsParentLeadsOn) {
  auto leader = candidate();
  EXPECT_GT(term(leader), 0U);
  EXPECT_EQ(leader.ask("fork", "child "), "no");
  EXPECT_EQ(leader.after("forked "), "0");
  EXPECT_EQ(leader.ask("leader", "leader "), "yes");
  EXPECT_EQ(holders("leader:orders"), 1U);
}

TEST_F(Recipes, AWorkerThatIsKilledLeavesItsTaskToTheNext) {
  Child worker("worker", {url(), "mail", "42", "600s", "600s"});
  worker.after("claimed");
  const TaskQueue queue(locks(), "mail");
  const auto busy = queue.claim("42");
  EXPECT_FALSE(busy);
  EXPECT_TRUE(busy.worker() && busy.worker()->pid == worker.pid());
  worker.kill();
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(queue.claim("42")); }));
}

TEST_F(Recipes, AWorkerThatIsStoppedLosesItsTaskWhenItsTtlHasEnded) {
  Child worker("worker", {url(), "mail", "42", "1s", "600s"});
  worker.after("claimed");
  worker.signal(SIGSTOP);
  const TaskQueue queue(locks(), "mail");
  std::optional<Task> task;
  ASSERT_TRUE(eventually([&] { return (task = queue.claim_any({"42"})).has_value(); }));
  worker.tell("done");
  worker.signal(SIGCONT);
  EXPECT_EQ(worker.after("done "), "lost");
  EXPECT_TRUE(*task);
}

TEST_F(Recipes, ATaskThatIsDoneStaysSoWhenItsWorkerHasEnded) {
  Child worker("worker", {url(), "mail", "42", "600s", "600s"});
  worker.after("claimed");
  EXPECT_EQ(worker.ask("done", "done "), "released");
  EXPECT_EQ(worker.wait(), 0);
  const auto late = TaskQueue(locks(), "mail").claim("42");
  EXPECT_FALSE(late);
  EXPECT_TRUE(late.worker() && late.worker()->finished);
}

}  // namespace
}  // namespace interlock::process
