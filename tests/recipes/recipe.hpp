// What every recipe has to do, over one store of each kind. Which stores there are and how they are
// opened is the conformance suite's business; recipes are thin, and a kind that keeps the contract keeps
// it in all its variants.
#pragma once

#include <algorithm>
#include <array>

#include "conformance/suite.hpp"

namespace interlock::recipes {

using namespace std::chrono_literals;
using conformance::eventually;
using conformance::kPatience;
using conformance::store_name;

inline std::vector<conformance::Store> stores() {
  auto all = conformance::stores();
  std::erase_if(all, [](const conformance::Store& store) {
    constexpr std::array kinds{"memory", "file", "redis", "postgres", "etcd"};
    return std::find(kinds.begin(), kinds.end(), store.name) == kinds.end();
  });
  return all;
}

/// The base of all suites. As in the conformance suite, client() is one more client of a fresh store.
using Recipe = conformance::Conformance;

}  // namespace interlock::recipes

/// Declares a suite whose tests run over every kind of store: `Election.OneLeads/redis`.
#define RECIPE_SUITE(Suite)       \
  class Suite : public Recipe {}; \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(stores()), store_name)
