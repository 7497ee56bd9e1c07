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

TEST(RedlockRulesTest, ItsScriptsAnswerLikeTheLockTable) {
  const std::array<servers::RedisServer, 3> nodes;
  int opened = 0;
  const auto open = [&] {
    return stores::open("redlock://" + nodes[0].address() + "," + nodes[1].address() + "," +
                        nodes[2].address() + "?prefix=walk" + std::to_string(++opened) + ":");
  };
  rules_walk::walk(open, true);
}

}  // namespace
}  // namespace interlock::redis_tests
