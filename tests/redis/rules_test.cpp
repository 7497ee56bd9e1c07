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
  // It forgets whoever is in line and has not asked for 3 s.
  rules_walk::walk(
      open,
      {.one_shot_leaves = true, .plain = true, .taken_over_is_gone = true, .silence = 2500ms});
}

}  // namespace
}  // namespace interlock::redis_tests
