// The scripts and the lock table have the same rules.
#include "redis/redis_test.hpp"
#include "rules_walk.hpp"

namespace interlock::redis_tests {
namespace {

using RulesTest = RedisTest;

TEST_F(RulesTest, TheScriptsAnswerLikeTheLockTable) {
  rules_walk::walk([&] {
    console()("FLUSHALL");
    return stores::open(url());
  });
}

}  // namespace
}  // namespace interlock::redis_tests
