// What an exclusive lock looks like in Redis, which other lock libraries rely on.
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

class LockFormat : public RedisTest {};

// Rows 0.3 and 1.1: one key of the prefix and the name, taken by SET NX with milliseconds, with an unguessable
// value; and taken away and prolonged only by the one whose value it is.
TEST_F(LockFormat, IsOneKeyWithAnExpiryInMillisecondsThatOnlyItsOwnerChanges) {
  const auto locks = connect(url() + "?prefix=jobs:");
  auto lease = Mutex(locks, "r", {.ttl = 750ms, .renew = false}).acquire();
  EXPECT_EQ(console()("TYPE jobs:r"), "string");
  const auto value = console()("GET jobs:r");
  EXPECT_NE(value.find(lease.owner().to_string()), std::string::npos) << value;
  const auto left = std::stoi(console()("PTTL jobs:r"));
  EXPECT_GT(left, 0) << "less than a second is no zero";
  EXPECT_LE(left, 750);
  ASSERT_TRUE(lease.extend(20s));
  EXPECT_GT(std::stoi(console()("PTTL jobs:r")), 10'000);

  EXPECT_EQ(console()("SET jobs:r another PX 20000"), "OK");
  EXPECT_FALSE(lease.extend(60s));
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_EQ(console()("GET jobs:r"), "another");
  EXPECT_LE(std::stoi(console()("PTTL jobs:r")), 20'000);
  EXPECT_FALSE(Mutex(locks, "r").try_acquire()) << "another library's lock counts";
}

}  // namespace
}  // namespace interlock::redis_tests
