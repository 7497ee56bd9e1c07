// A lease that moves from one process to another.
#include "process/child.hpp"

namespace interlock::process {
namespace {

using Handovers = ProcessTest;

TEST_F(Handovers, ATokenOutlivesItsProcessAndAnotherOneAdoptsIt) {
  auto first = holder("r");
  const auto fence = first.fence();
  const auto token = first.ask("detach", "token ");
  EXPECT_EQ(first.ask("state", "state "), "released");
  first.tell("exit");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_FALSE(Mutex(locks(), "r").try_acquire()) << "no process, but the TTL holds it";

  auto second = holder("-");
  second.tell("adopt " + token);
  EXPECT_EQ(second.fence(), fence);
  EXPECT_EQ(second.ask("state", "state "), "held");
  EXPECT_EQ(second.ask("release", "release "), "released");
  EXPECT_TRUE(nothing_left());
}

TEST_F(Handovers, WhoeverAdoptedItAndIsKilledIsNoticed) {
  auto first = holder("r");
  EXPECT_GT(first.fence(), 0U);
  const auto token = first.ask("detach", "token ");
  auto second = holder("-");
  second.tell("adopt " + token);
  EXPECT_GT(second.fence(), 0U);
  second.kill();
  EXPECT_TRUE(Mutex(locks(), "r").try_acquire_for(kPatience));
}

TEST_F(Handovers, ATokenWhoseProcessIsKilledIsHeldOn) {
  auto first = holder("r", "600s");
  EXPECT_GT(first.fence(), 0U);
  const auto token = first.ask("detach", "token ");
  first.kill();
  EXPECT_FALSE(Mutex(locks(), "r").try_acquire());
  EXPECT_EQ(locks().adopt(token).release(), LeaseState::released);
}

}  // namespace
}  // namespace interlock::process
