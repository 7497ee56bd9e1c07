// Rule 13: a killed process is noticed at once where the store can tell (row 4.5).
#include "process/child.hpp"

namespace interlock::process {
namespace {

using Kills = ProcessTest;

TEST_F(Kills, TheNextGetsItLongBeforeTheTtlEnds) {
  auto first = holder("r");
  const auto fence = first.fence();
  auto next = queued_holder("r");
  const auto start = BootClock::now();
  first.kill();
  EXPECT_GT(next.fence(), fence);
  EXPECT_LT(BootClock::now() - start, 300s);
  EXPECT_EQ(next.ask("release", "release "), "released");
  EXPECT_TRUE(nothing_left());
}

TEST_F(Kills, AHolderIsDeadThoughItsParentHasNotLookedYet) {
  auto first = holder("r");
  const auto fence = first.fence();
  auto next = queued_holder("r");
  first.kill_and_leave_it();
  EXPECT_GT(next.fence(), fence);
}

TEST_F(Kills, WhoeverAsksAfterwardsGetsItToo) {
  auto first = holder("r");
  const auto fence = first.fence();
  EXPECT_FALSE(Mutex(locks(), "r").try_acquire());
  first.kill();
  auto attempt = Mutex(locks(), "r").try_acquire();
  ASSERT_TRUE(attempt);
  EXPECT_GT(attempt->fence().value, fence);
  EXPECT_EQ(holders("r"), 1U);
}

TEST_F(Kills, AWaiterIsSkipped) {
  auto held = Mutex(locks(), "r").acquire();
  auto killed = queued_holder("r");
  auto next = queued_holder("r");
  killed.kill();
  held.release();
  EXPECT_GT(next.fence(), 0U);
}

TEST_F(Kills, AQueuedWriterHoldsBackNoReaderAnyMore) {  // acceptance case 20
  auto reader = holder("r", "600s", "shared");
  EXPECT_GT(reader.fence(), 0U);
  auto writer = queued_holder("r");
  const RwLock lock(locks(), "r");
  EXPECT_FALSE(lock.try_read());
  writer.kill();
  EXPECT_TRUE(lock.try_read_for(kPatience));
}

TEST_F(Kills, AHolderOfASetLeavesAllOfIt) {
  auto first = holder("table/row");
  EXPECT_GT(first.fence(), 0U);
  EXPECT_FALSE(Mutex(locks(), "table").try_acquire());
  first.kill();
  EXPECT_TRUE(Mutex(locks(), "table").try_acquire_for(kPatience));
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::process
