// On Redis a killed holder's lock is taken until its TTL has ended; one that gets SIGTERM gives it back.
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

class Terminated : public RedisTest {};

TEST_F(Terminated, AHolderFreesItsLockAtOnce) {
  Child holder("terminated", {url(), "r"});
  ASSERT_EQ(holder.line(), "held");
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_EQ(holders("r"), 0U);
  EXPECT_TRUE(Mutex(onlooker(), "r").try_acquire());
}

}  // namespace
}  // namespace interlock::redis_tests
