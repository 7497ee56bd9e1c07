// A witness outside of every store: told who is inside, it knows when two are that must not be.
//
// Whoever was granted something enters before it works and leaves before it gives anything back. Two
// that conflict are an overlap only if both leases are valid at one moment: a lease that was lost has
// been told, and an evicted one can't know yet (its fence is what protects against it).
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/lease.hpp"

namespace interlock::conformance {

class OverlapRegister {
 public:
  /// Holds these parts (with their ancestors) by this lease, which must not move until leave().
  void enter(const Lease& lease, const std::vector<Part>& parts) {
    const std::lock_guard lock(mutex_);
    for (const auto& part : parts) enter_one(lease, part);
  }

  void leave(const Owner& owner, const std::string& resource) {
    const std::lock_guard lock(mutex_);
    inside_[resource].erase(owner);
  }

  /// This owner is about to be evicted, and won't know for a while.
  void evicting(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    evicted_.insert(owner);
  }

  [[nodiscard]] std::vector<std::string> overlaps() const {
    const std::lock_guard lock(mutex_);
    return overlaps_;
  }
  [[nodiscard]] int entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  struct Inside {
    const Lease* lease;
    Part part;
  };

  void enter_one(const Lease& lease, const Part& part) {
    ++entries_;
    auto& row = inside_[part.resource];
    std::uint32_t slots = part.slots;
    std::vector<const Lease*> in_the_way;
    for (const auto& [owner, other] : row) {
      if (owner == lease.owner() || evicted_.contains(owner)) continue;
      if (other.lease->state() != LeaseState::held) continue;
      if (part.mode == Mode::slots) {
        slots += other.part.slots;
        if (slots > part.capacity) in_the_way.push_back(other.lease);
      } else if (part.mode == Mode::exclusive || other.part.mode == Mode::exclusive) {
        in_the_way.push_back(other.lease);
      }
    }
    const bool stale = part.mode == Mode::exclusive && !part.ancestor &&
                       lease.fence(part.resource) <= highest_[part.resource];
    // Looked at last: if it is valid now, it was valid when the others were looked at.
    const bool valid = lease.state() == LeaseState::held && !evicted_.contains(lease.owner());
    if (valid && !in_the_way.empty()) complain(lease, part, "overlaps", in_the_way.front());
    if (valid && stale) complain(lease, part, "has a fence that does not rise", nullptr);
    if (part.mode == Mode::exclusive && !part.ancestor) {
      auto& highest = highest_[part.resource];
      highest = std::max(highest, lease.fence(part.resource));
    }
    row.insert_or_assign(lease.owner(), Inside{&lease, part});
  }

  void complain(const Lease& lease, const Part& part, std::string_view what, const Lease* other) {
    std::ostringstream text;
    text << lease.owner().brief() << " on " << part.resource << " (" << to_string(part.mode) << ", fence "
         << lease.fence(part.resource).value << ") " << what;
    if (other != nullptr) text << ' ' << other->owner().brief();
    text << "; the highest fence was " << highest_[part.resource].value;
    overlaps_.push_back(text.str());
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::map<Owner, Inside>> inside_;
  std::map<std::string, Fence> highest_;
  std::set<Owner> evicted_;
  std::vector<std::string> overlaps_;
  int entries_ = 0;
};

}  // namespace interlock::conformance
