#include "checks.hpp"

#include <algorithm>
#include <bit>

#include "trace.hpp"

namespace simulation {

namespace {

bool same_identity(const Claim& a, const std::string& identity) {
  return !identity.empty() && a.who->identity == identity;
}

bool conflict(const Claim& a, const Claim& b) {
  if (same_identity(a, b.who->identity)) return false;
  for (const auto& part : a.parts) {
    const auto* other = b.find(part.resource);
    if (other != nullptr && (part.mode != Mode::shared || other->mode != Mode::shared)) return true;
  }
  return false;
}

}  // namespace

std::uint64_t Checks::believes(const Claim& claim, Time until) {
  const auto now = world_.now();
  std::erase_if(beliefs_, [now](const Belief& belief) { return belief.until <= now; });
  for (const auto& belief : beliefs_) {
    if (!only_fences_ && conflict(belief.claim, claim)) {
      world_.violate("exclusion",
                     describe(claim) + " is held, and so is " + describe(belief.claim) + " for " +
                         std::to_string((belief.until - now).count() / 1000) + " us to come");
    }
  }
  beliefs_.push_back({++last_, claim, until});
  return last_;
}

void Checks::believes_until(std::uint64_t belief, Time until) {
  for (auto& each : beliefs_) {
    if (each.id == belief) each.until = std::max(each.until, until);
  }
}

void Checks::ends(std::uint64_t belief) {
  std::erase_if(beliefs_, [belief](const Belief& each) { return each.id == belief; });
}

void Checks::fences(const Claim& claim, const std::vector<interlock::Fence>& fences, Time asked) {
  ++grants_;
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    if (part.mode != Mode::exclusive) continue;
    auto& before = granted_[part.resource];
    const auto fence = fences[i].value;
    for (const auto& each : before) {
      if (each.owner == claim.owner) continue;
      const bool same = same_identity(claim, each.identity);
      if (each.fence == fence && !same) {
        world_.violate("fences", "the same fence " + std::to_string(fence) +
                                     " twice: " + describe(claim) + ", and " + each.owner.brief());
      }
      if (each.told < asked && each.fence > fence) {
        world_.violate("fences", "a fence that goes back: " + std::to_string(fence) + " of " +
                                     describe(claim) + " after " + std::to_string(each.fence) +
                                     " of " + each.owner.brief());
      }
    }
    before.push_back({fence, world_.now(), claim.who->identity, claim.owner});
  }
}

void Checks::disturbed(NodeSet nodes, std::optional<std::size_t> client, Time until) {
  disturbances_.push_back({nodes, client, world_.now(), until});
}

bool Checks::client_disturbed(std::size_t client, Time from) const {
  return std::any_of(disturbances_.begin(), disturbances_.end(), [&](const Disturbance& each) {
    return each.client == client && each.until >= from;
  });
}

void Checks::lost(const Claim& claim, Time granted, std::size_t client, const std::string& why) {
  if (only_fences_) return;
  const auto from = world_.now() - 2 * claim.ttl - 3s;
  NodeSet nodes = 0;
  for (const auto& each : disturbances_) {
    const bool sleeps = each.client && each.nodes == 0;
    // A node that others can't reach has something of theirs, which they can't take away.
    if (each.until < from || (sleeps && each.client != client)) continue;
    if (sleeps || each.from < granted + claim.ttl) return;
    nodes |= each.nodes;
  }
  if (static_cast<std::size_t>(std::popcount(nodes)) * 2 >= nodes_) return;
  world_.violate("losses",
                 describe(claim) + " was lost though a majority was there all the time: " + why);
}

}  // namespace simulation
