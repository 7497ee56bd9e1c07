// The SQL functions and the lock table have the same rules.
#include "rules_walk.hpp"

#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

using RulesTest = PostgresTest;

TEST_F(RulesTest, LeaseModeAnswersLikeTheLockTable) {
  int round = 0;
  rules_walk::walk([&] { return stores::open(lease_url("prefix=" + std::to_string(++round))); });
}

TEST_F(RulesTest, AdvisoryModeAnswersLikeTheLockTable) {
  int round = 0;
  rules_walk::walk(
      [&] { return stores::open(url("wait=listen&prefix=" + std::to_string(++round))); });
}

}  // namespace
}  // namespace interlock::postgres_tests
