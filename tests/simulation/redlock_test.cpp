// Redlock in virtual time: thousands of runs, each of a seed. See lab/simulation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "run.hpp"

namespace {

void expect_no_violation(simulation::Trouble trouble, std::uint64_t seeds) {
  const char* given = std::getenv("INTERLOCK_TEST_SEED");
  const std::uint64_t first = given != nullptr ? std::stoull(given) : 1;
  std::cout << seeds << " seeds from " << first << " on\n";
  std::uint64_t grants = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    const simulation::Options options{.seed = seed, .trouble = trouble};
    const auto result = simulation::run(options);
    grants += result.grants;
    if (result.check.empty()) continue;
    std::string story;
    const auto shorter = simulation::shorten(options, result.check);
    for (const auto& line : simulation::run(shorter).trace) story += line + "\n";
    FAIL() << result.check << ": " << result.what << "\nINTERLOCK_TEST_SEED=" << seed << "\n"
           << story;
  }
  EXPECT_GT(grants, 5 * seeds) << "a run in which nobody gets anything proves nothing";
}

TEST(Redlock, NothingIsViolatedWhateverGoesWrong) {
  expect_no_violation(simulation::Trouble::all, 1500);
}

TEST(Redlock, FencesRiseAlsoWhenClocksAreSetForward) {
  expect_no_violation(simulation::Trouble::clocks, 2500);
}

TEST(Redlock, NodesThatLoseTheirDataBreakNothing) {
  expect_no_violation(simulation::Trouble::losses, 2000);
}

TEST(Redlock, ASeedIsTheWholeRun) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const simulation::Options options{.seed = seed, .traces = true};
    EXPECT_EQ(simulation::run(options).trace, simulation::run(options).trace);
  }
}

}  // namespace
