// A witness outside of every store: told who is inside, it knows when two are that must not be.
//
// Whoever was granted something enters before it works and leaves before it gives anything back.
// Two that conflict are an overlap only if both leases are valid at one moment: a lease that was
// lost has been told, and an evicted one can't know yet (its fence is what protects against it).
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
  enum Grant {
    fresh,  ///< its exclusive parts have fences that nobody has seen
    again,  ///< looked at before, so no fence has to be a new one
  };

  /// Holds these parts (with their ancestors) by this lease, which must not move until leave().
  void enter(const Lease& lease, const std::vector<Part>& parts, Grant grant = fresh) {
    const std::lock_guard lock(mutex_);
    for (const auto& part : parts) enter_one(lease, part, grant);
  }

  void leave(const Lease& lease) {
    const std::lock_guard lock(mutex_);
    for (auto& [resource, row] : inside_) row.erase(&lease);
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
    Owner owner;  // as it was when it entered: its thread may be changing it
    Part part;
  };

  void enter_one(const Lease& lease, const Part& part, Grant grant) {
    ++entries_;
    auto& row = inside_[part.resource];
    std::uint32_t slots = part.slots;
    std::vector<Owner> in_the_way;
    for (const auto& [other_lease, other] : row) {
      if (other_lease == &lease || evicted_.contains(other.owner)) continue;
      if (other_lease->state() != LeaseState::held) continue;
      if (part.mode == Mode::slots) {
        slots += other.part.slots;
        if (slots > part.capacity) in_the_way.push_back(other.owner);
      } else if (part.mode == Mode::exclusive || other.part.mode == Mode::exclusive) {
        in_the_way.push_back(other.owner);
      }
    }
    const bool stale = grant == fresh && part.mode == Mode::exclusive &&
                       lease.fence(part.resource) <= highest_[part.resource];
    // Looked at last: if it is valid now, it was valid when the others were looked at.
    const bool valid = lease.state() == LeaseState::held && !evicted_.contains(lease.owner());
    if (valid && !in_the_way.empty())
      complain(lease, part, "overlaps " + in_the_way.front().brief());
    if (valid && stale) complain(lease, part, "has a fence that does not rise");
    if (part.mode == Mode::exclusive) {
      auto& highest = highest_[part.resource];
      highest = std::max(highest, lease.fence(part.resource));
    }
    row.insert_or_assign(&lease, Inside{lease.owner(), part});
  }

  void complain(const Lease& lease, const Part& part, std::string_view what) {
    std::ostringstream text;
    text << lease.owner().brief() << " on " << part.resource << " (" << to_string(part.mode)
         << ", fence " << lease.fence(part.resource).value << ") " << what;
    text << "; the highest fence was " << highest_[part.resource].value;
    overlaps_.push_back(text.str());
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::map<const Lease*, Inside>> inside_;
  std::map<std::string, Fence> highest_;
  std::set<Owner> evicted_;
  std::vector<std::string> overlaps_;
  int entries_ = 0;
};

}  // namespace interlock::conformance
