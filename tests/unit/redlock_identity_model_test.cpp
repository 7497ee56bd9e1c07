// Redlock's fences among claims of one identity, which hold a node together: random walks over the orders in
// which requests arrive, replies are late or lost, claims are released and healed. See docs/guarantees.md.
//
// What has to hold: a grant that was told before another one was asked for has no larger fence; and a smaller
// one if they are of different identities. Each rule is needed: without it, a walk finds a fence that goes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

struct SharingRules {
  bool raises = true;  ///< phase two raises the fence of the other holds of the identity
  bool has_floor =
      true;  ///< a late phase two lowers no number below what another claim may have got
  bool heals_high =
      true;  ///< a node that is healed gives out nothing below what it gave out before
};

constexpr std::size_t kNodes = 3;
constexpr std::size_t kClaims = 4;  ///< at a time; the last one is of another identity
constexpr std::size_t kMajority = 2;

struct Hold {
  int fence = 0;
  int number = 0;
  int floor = 0;
};

struct SharedNode {
  int count = 0;
  int most = 0;                       ///< the largest fence that a hold had here
  std::map<std::size_t, Hold> holds;  ///< by claim
};

enum class Phase : std::uint8_t { idle, first, second, granted, over };

struct SharedClaim {
  Phase phase = Phase::idle;
  int fence = 0;
  int before_same = 0;   ///< the largest fence that its identity had been told of when it began
  int before_other = 0;  ///< and others
  struct At {
    bool asked = false, served = false, counted = false;
    bool to_confirm = false, confirmed = false, released = false;
    int fence = 0, number = 0;
    int renewed = -1;  ///< what it said to a renewal; 0: lost
    bool to_heal = false;
  };
  std::vector<At> at = std::vector<At>(kNodes);
  int healed = 0;
};

class Walk {
 public:
  Walk(SharingRules rules, std::uint64_t seed) : rules_(rules), random_(seed) {
    for (auto& node : nodes_) node.count = pick(6);
  }

  std::string run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) step();
    return wrong_;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  static bool same(std::size_t a, std::size_t b) {
    return (a == kClaims - 1) == (b == kClaims - 1);
  }

  void step() {
    const auto c = static_cast<std::size_t>(pick(kClaims));
    const auto n = static_cast<std::size_t>(pick(kNodes));
    auto& claim = claims_[c];
    auto& at = claim.at[n];
    if (pick(20) == 0) nodes_[n].count += pick(3);  // claims of other resources
    switch (claim.phase) {
      case Phase::idle:
        return begin(claim, c);
      case Phase::first:
        if (!at.served) return serve(c, n);
        if (!at.counted && pick(3) != 0) return hear(c, n);
        if (pick(8) == 0) claim.phase = Phase::over;
        return;
      case Phase::second:
        if (at.to_confirm) return confirm(c, n);
        if (pick(12) == 0) claim.phase = Phase::over;
        return;
      case Phase::granted:
        if (!at.served && pick(8) == 0) return serve(c, n);
        if (at.served && !at.counted && !at.to_confirm && !at.confirmed) {
          at.to_confirm = at.fence != claim.fence;  // late: it shall know the fence, too
          at.counted = true;
          return;
        }
        if (at.to_confirm) return confirm(c, n);
        if (at.to_heal) return heal(c, n);
        if (at.renewed < 0 && pick(3) != 0) return renew(c, n);
        if (pick(16) == 0) claim.phase = Phase::over;
        return;
      case Phase::over:
        at.released = true;
        nodes_[n].holds.erase(c);
        if (std::all_of(claim.at.begin(), claim.at.end(), [](const auto& a) { return a.released; }))
          claim = {};
    }
  }

  void begin(SharedClaim& claim, std::size_t c) {
    claim.phase = Phase::first;
    claim.before_same = told_[c == kClaims - 1 ? 1 : 0];
    claim.before_other = told_[c == kClaims - 1 ? 0 : 1];
  }

  void serve(std::size_t c, std::size_t n) {
    auto& node = nodes_[n];
    auto& at = claims_[c].at[n];
    if (node.holds.contains(c)) return;  // was healed before
    int fence = node.count + 1;
    int floor = node.most;
    if (!node.holds.empty()) {
      if (!same(node.holds.begin()->first, c)) return;
      fence = node.holds.begin()->second.fence;
      for (auto& [by, hold] : node.holds) hold.floor = hold.fence;
      floor = fence;
    }
    at.served = true;
    at.fence = fence;
    at.number = ++node.count;
    node.most = std::max(node.most, fence);
    node.holds[c] = {.fence = fence, .number = node.count, .floor = floor};
  }

  void hear(std::size_t c, std::size_t n) {
    auto& claim = claims_[c];
    claim.at[n].counted = true;
    claim.fence = std::max(claim.fence, claim.at[n].fence);
    if (count(c, &SharedClaim::At::counted) < kMajority) return;
    claim.phase = Phase::second;
    for (auto& at : claim.at) {
      if (!at.counted) continue;
      at.confirmed = at.fence == claim.fence;
      at.to_confirm = !at.confirmed;
    }
    grant(c);
  }

  std::size_t count(std::size_t c, bool SharedClaim::At::*what) const {
    const auto& all = claims_[c].at;
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [what](const auto& at) { return at.*what; }));
  }

  void raise(SharedNode& node, std::size_t c, int fence) {
    for (auto& [by, hold] : node.holds) {
      if (by == c) continue;
      if (rules_.raises) hold.fence = std::max(hold.fence, fence);
      hold.floor = hold.fence;
    }
  }

  void confirm(std::size_t c, std::size_t n) {
    auto& node = nodes_[n];
    auto& claim = claims_[c];
    auto& at = claim.at[n];
    at.to_confirm = false;
    const auto found = node.holds.find(c);
    if (found == node.holds.end() || found->second.number != at.number) return;
    auto& hold = found->second;
    const auto known = hold.fence;
    hold.fence = rules_.has_floor ? std::max(hold.floor, claim.fence) : claim.fence;
    if (node.most == known) node.most = hold.fence;
    node.most = std::max(node.most, hold.fence);
    node.count = std::max(node.count, claim.fence);
    raise(node, c, hold.fence);
    at.confirmed = pick(8) != 0;  // or the reply is lost
    if (claim.phase == Phase::second) grant(c);
  }

  void grant(std::size_t c) {
    auto& claim = claims_[c];
    if (count(c, &SharedClaim::At::confirmed) < kMajority) return;
    claim.phase = Phase::granted;
    if (claim.fence < claim.before_same || claim.fence <= claim.before_other)
      wrong_ = "fence " + std::to_string(claim.fence) + " after " +
               std::to_string(std::max(claim.before_same, claim.before_other));
    auto& told = told_[c == kClaims - 1 ? 1 : 0];
    told = std::max(told, claim.fence);
  }

  void renew(std::size_t c, std::size_t n) {
    auto& claim = claims_[c];
    auto& at = claim.at[n];
    const auto found = nodes_[n].holds.find(c);
    at.renewed = found == nodes_[n].holds.end() ? 0 : found->second.fence;
    int held = 0;
    int largest = 0;
    for (const auto& each : claim.at) {
      if (each.renewed < 0) return;
      held += each.renewed > 0 ? 1 : 0;
      largest = std::max(largest, each.renewed);
    }
    for (auto& each : claim.at) {
      each.to_heal = held >= static_cast<int>(kMajority) && each.renewed == 0;
      each.renewed = -1;
    }
    claim.healed = largest;
  }

  void heal(std::size_t c, std::size_t n) {
    auto& node = nodes_[n];
    auto& claim = claims_[c];
    claim.at[n].to_heal = false;
    if (node.holds.contains(c)) return;
    if (!node.holds.empty() && !same(node.holds.begin()->first, c)) return;
    int fence = claim.healed;
    if (rules_.heals_high) fence = std::max(fence, node.most);
    for (const auto& [by, hold] : node.holds) fence = std::max(fence, hold.fence);
    raise(node, c, fence);
    ++node.count;
    node.holds[c] = {.fence = fence, .number = node.count, .floor = fence};
    node.most = std::max(node.most, fence);
    node.count = std::max(node.count, fence);
  }

  const SharingRules rules_;
  std::mt19937_64 random_;
  std::vector<SharedNode> nodes_ = std::vector<SharedNode>(kNodes);
  std::vector<SharedClaim> claims_ = std::vector<SharedClaim>(kClaims);
  int told_[2] = {0, 0};
  std::string wrong_;
};

/// Of so many walks, the first that goes wrong, and how; empty: none does.
std::string first_wrong(const SharingRules& rules, std::uint64_t walks) {
  for (std::uint64_t seed = 1; seed <= walks; ++seed) {
    const auto wrong = Walk(rules, seed).run(400);
    if (!wrong.empty()) return wrong + ", seed " + std::to_string(seed);
  }
  return {};
}

constexpr std::uint64_t kWalks = 100'000;

TEST(RedlockIdentityModel, TheFencesOfOneIdentityNeverGoBack) {
  EXPECT_EQ(first_wrong({}, kWalks), "");
}
TEST(RedlockIdentityModel, TheyDoIfPhaseTwoRaisesOnlyItsOwnHold) {
  EXPECT_NE(first_wrong({.raises = false}, kWalks), "");
}
TEST(RedlockIdentityModel, TheyDoIfALatePhaseTwoLowersWhatAnotherClaimGot) {
  EXPECT_NE(first_wrong({.has_floor = false}, kWalks), "");
}
TEST(RedlockIdentityModel, TheyDoIfANodeIsHealedWithTheFenceOfTheLeaseAlone) {
  EXPECT_NE(first_wrong({.heals_high = false}, kWalks), "");
}

}  // namespace
