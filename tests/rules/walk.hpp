// The lock table and a store that has its rules in another language: whatever is asked of both, in any
// order, they answer alike, wake the same waiters, and have the same come of it as time passes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "rules/asking.hpp"
#include "rules/both.hpp"

namespace interlock::rules_walk {

class Walk {
 public:
  Walk(Both& both, std::uint64_t seed, const Liberties& may)
      : both_(both), may_(may), next_(seed, may.plain, both.moves()) {}

  void step() {
    if (both_.moves() && next_.below(6) == 0) {
      pass();
    } else {
      one();
    }
    both_.look();
    // Most of those whose turn it is ask, as clients do.
    for (const auto& claim : both_.model().next()) {
      if (next_.below(4) == 0) continue;
      both_.acquire(claim, true);
      both_.look();
    }
  }

 private:
  void one() {
    const auto what = next_.below(10);
    if (known_.empty() || what < 3) {
      known_.push_back(next_.claim());
      both_.acquire(known_.back(), next_.below(3) > 0);
      return;
    }
    const auto at = next_.below(known_.size());
    if (what < 5) {
      const bool queue = next_.below(4) > 0;
      both_.acquire(known_[at], queue || may_.one_shot_leaves);
    } else if (what < 6) {
      both_.renew(known_[at]);
    } else if (what < 7) {
      const auto claim = next_.changed(known_[at]);
      const bool took_over = both_.acquire(claim, next_.below(2) == 0);
      if (took_over && may_.taken_over_is_gone)
        known_[at] = claim;
      else
        known_.push_back(claim);
    } else {
      both_.release(known_[at]);
      if (next_.below(2) == 0) known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void pass() {
    const auto waiting = both_.model().waiting();
    both_.pass(next_.time());
    // A waiter that was forgotten keeps its place if nobody has needed it meanwhile, or has none: a store need not
    // say. It is not asked for again.
    for (const auto& claim : waiting) {
      if (!both_.model().waits(claim.owner))
        std::erase_if(known_, [&](const Claim& one) { return one.owner == claim.owner; });
    }
    // Some have their heartbeat.
    for (const auto& claim : both_.model().waiting()) {
      if (next_.below(2) == 0) both_.acquire(claim, true);
    }
  }

  Both& both_;
  const Liberties may_;
  Asking next_;
  std::vector<Claim> known_;
};

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::stoull(given) : otherwise;
}

/// Asks both for a hundred things, in an order that the seed decides, again and again with the next seed: 30 times, but
/// for 15 seconds at most; or once with INTERLOCK_TEST_SEED; or INTERLOCK_WALK_ROUNDS=n times, from a random seed on.
/// `open`: an empty store. `moves`: see Both.
template <class Open>
void walk(Open open, const Liberties& may = {}, const Both::Moves& moves = {}) {
  const bool given = std::getenv("INTERLOCK_TEST_SEED") != nullptr;
  const bool counted = given || std::getenv("INTERLOCK_WALK_ROUNDS") != nullptr;
  const auto first = number_from("INTERLOCK_TEST_SEED", counted ? std::random_device{}() : 1);
  const auto rounds = number_from("INTERLOCK_WALK_ROUNDS", given ? 1 : 30);
  const auto until = counted ? TimePoint::max() : BootClock::now() + 15s;
  for (auto seed = first; seed < first + rounds && !testing::Test::HasFailure(); ++seed) {
    if (BootClock::now() > until) break;
    SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(seed));
    std::cerr << "INTERLOCK_TEST_SEED=" << seed << "\n";  // should it never end
    Both both(open(), may, moves);
    Walk one(both, seed, may);
    for (int step = 0; step < 100 && !testing::Test::HasFailure() && !both.over(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      one.step();
    }
    if (testing::Test::HasFailure()) std::cerr << "What was asked:\n" << both.story();
  }
}

}  // namespace interlock::rules_walk
