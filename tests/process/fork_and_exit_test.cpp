// Rule 13: a forked child holds nothing of its parent's, and an orderly exit releases everything.
#include "process/child.hpp"

namespace interlock::process {
namespace {

using Forks = ProcessTest;
using Exits = ProcessTest;

TEST_F(Forks, AChildHoldsNothingAndTakesNothingFromItsParent) {
  auto parent = holder("r");
  EXPECT_GT(parent.fence(), 0U);
  parent.tell("fork");
  EXPECT_NE(parent.after("child "), "held");
  EXPECT_EQ(parent.after("child "), "was refused");
  EXPECT_EQ(parent.after("forked "), "0") << "the child's destructors and exit are quiet";
  EXPECT_EQ(parent.ask("state", "state "), "held");
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_FALSE(Mutex(locks(), "r").try_acquire());
  EXPECT_EQ(parent.ask("release", "release "), "released");
  EXPECT_TRUE(nothing_left());
}

TEST_F(Forks, AParentGoesOnRenewing) {
  auto parent = holder("r", "1s");
  EXPECT_GT(parent.fence(), 0U);
  parent.tell("fork");
  parent.after("forked ");
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(parent.ask("state", "state "), "held");
}

TEST_F(Exits, AnOrderlyExitReleasesAllThatIsHeldAndAllThatWaits) {  // acceptance case 31, row 4.7
  const auto taken = Mutex(locks(), "taken").acquire();
  for (const auto* how : {"exit", "return", "lose"}) {
    Child leaver("leaver", {url()});
    leaver.after("ready");
    for (const auto* name : {"static", "local/1", "local/2", "thread"}) {
      EXPECT_EQ(holders(name), 1U) << name;
    }
    EXPECT_TRUE(eventually([&] { return waiters("taken") == 1; }));
    leaver.tell(how);
    EXPECT_EQ(leaver.wait(), 0) << how;
    const auto left = locks().inspect().resources;
    ASSERT_EQ(left.size(), 1U) << how << ": " << left.at(0).resource;
    EXPECT_EQ(left[0].resource, "taken");
    EXPECT_TRUE(left[0].waiters.empty()) << how;
  }
}

TEST_F(Exits, AHolderThatExitsIsSucceededAtOnce) {
  auto first = holder("r");
  EXPECT_GT(first.fence(), 0U);
  auto next = queued_holder("r");
  first.tell("exit");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_GT(next.fence(), 0U);
}

TEST_F(Exits, AProgramThatEndsAsACallbackIsGivenALeaseReleasesIt) {
  for (int i = 0; i < 30; ++i) {
    const auto* how = std::array{"callback", "main", "busy"}.at(static_cast<std::size_t>(i) % 3);
    Child receiver("receiver", {url(), how});
    ASSERT_EQ(receiver.wait(), 0) << how;
    ASSERT_TRUE(nothing_left()) << how;
  }
}

}  // namespace
}  // namespace interlock::process
