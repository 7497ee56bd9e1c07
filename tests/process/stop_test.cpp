// Rule 7 against a process that stands still: stopped past its TTL, it knows when it wakes.
#include "process/child.hpp"

namespace interlock::process {
namespace {

using Stops = ProcessTest;

TEST_F(Stops, AStoppedHolderIsSucceededAndKnowsItWhenItWakes) {
  auto stopped = holder("r", "1s");
  const auto old_fence = stopped.fence();
  stopped.signal(SIGSTOP);
  auto lease = Mutex(locks(), "r").acquire();
  EXPECT_GT(lease.fence().value, old_fence) << "whatever it still writes can be refused";

  // The very first thing that it does when it wakes is to look.
  stopped.tell("state");
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.after("state "), "lost");
  EXPECT_EQ(stopped.ask("release", "release "), "lost");
  EXPECT_TRUE(lease) << "not the stopped one's to release";
  EXPECT_EQ(lease.release(), LeaseState::released);
}

TEST_F(Stops, TheLostSignalFires) {
  auto stopped = holder("r", "1s");
  EXPECT_GT(stopped.fence(), 0U);
  stopped.signal(SIGSTOP);
  const auto lease = Mutex(locks(), "r").acquire();
  stopped.signal(SIGCONT);
  stopped.after("lost");
}

TEST_F(Stops, AStoppedWaiterDoesNotHoldUpTheOthers) {
  auto held = Mutex(locks(), "r").acquire();
  auto stopped = queued_holder("r");
  auto next = queued_holder("r");
  stopped.signal(SIGSTOP);
  held.release();
  EXPECT_GT(next.fence(), 0U);
  EXPECT_EQ(next.ask("release", "release "), "released");
  stopped.signal(SIGCONT);
  EXPECT_GT(stopped.fence(), 0U) << "it is served after all";
}

}  // namespace
}  // namespace interlock::process
