// The suite watches itself: every rule of the contract has a test, and so has every acceptance case
// that a store can pass or fail.
#include "conformance/coverage.hpp"

#include <gtest/gtest.h>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

TEST(Coverage, EveryRuleHasATest) {
  for (int rule = 1; rule <= 14; ++rule) {
    EXPECT_TRUE(covered_rules().contains(rule)) << "rule " << rule << " of docs/guarantees.md";
  }
}

TEST(Coverage, EveryAcceptanceCaseThatAppliesHasATest) {
  // Not a store's: orderly exit is in tests/process (31); reading a file under a lock (34),
  // elections (38), caches (39) and quorums (40, 41) belong to what is built on top.
  const std::set<int> elsewhere{31, 34, 38, 39, 40, 41};
  for (int number = 1; number <= 41; ++number) {
    EXPECT_NE(covered_cases().contains(number), elsewhere.contains(number))
        << "acceptance case " << number;
  }
}

TEST(Coverage, AtLeastOneStoreRunsTheSuite) { EXPECT_FALSE(stores().empty()); }

}  // namespace
}  // namespace interlock::conformance
