#include <algorithm>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

bool conflict(const Belief& a, const Belief& b) {
  if (!a.owner.empty() && a.owner == b.owner) return false;
  if (a.lease == b.lease) return false;
  const bool slots = a.part.mode == Mode::slots || b.part.mode == Mode::slots;
  if (slots) return a.part.mode != b.part.mode || a.part.c != b.part.c;
  if (!a.identity.empty() && a.identity == b.identity) return false;
  return a.part.mode == Mode::exclusive || b.part.mode == Mode::exclusive;
}

/// Data were lost, or a replica took over, between the two grants.
bool allowed(const Index& index, const Belief& earlier, const Belief& later) {
  return std::any_of(index.faults().begin(), index.faults().end(), [&](const auto& fault) {
    return fault.voids && fault.from < later.from && earlier.from < fault.to + earlier.ttl;
  });
}

std::string describe(const Belief& belief) {
  const auto& part = belief.part;
  std::string how = part.mode == Mode::exclusive ? "exclusively" : "shared";
  if (part.mode == Mode::slots) {
    how = std::to_string(part.n) + " of its " + std::to_string(part.c) + " slots";
  }
  if (belief.above) how += " (as it holds " + text(*belief.holds, "r") + " below it)";
  return belief.worker + " " + how + " by lease " + belief.lease;
}

class Sweep {
 public:
  Sweep(const Index& index, Finding& finding) : index_(index), finding_(finding) {}

  void over(const std::string& resource, const std::vector<Belief>& beliefs) {
    std::vector<const Belief*> active;
    for (const auto& belief : beliefs) {
      ++finding_.looked_at;
      if (belief.to <= belief.from) continue;
      std::erase_if(active, [&](const Belief* each) { return each->to <= belief.from; });
      for (const auto* each : active) {
        if (conflict(*each, belief)) {
          add({each, &belief}, resource + " is held by " + describe(*each) + " and, " +
                                   text_of(belief.from - each->from) + " later, by " +
                                   describe(belief) + ", both for " +
                                   text_of(std::min(each->to, belief.to) - belief.from));
        }
      }
      active.push_back(&belief);
      if (belief.part.mode == Mode::slots) count(resource, active);
    }
  }

 private:
  void count(const std::string& resource, const std::vector<const Belief*>& active) {
    std::map<std::string, std::int64_t> taken;  // an adopted lease is held once
    std::vector<const Belief*> members;
    for (const auto* each : active) {
      if (each->part.mode != Mode::slots) continue;
      auto& slots = taken[each->owner.empty() ? each->lease : each->owner];
      slots = std::max(slots, each->part.n);
      members.push_back(each);
    }
    std::int64_t sum = 0;
    for (const auto& [owner, slots] : taken) sum += slots;
    const auto capacity = active.back()->part.c;
    if (sum <= capacity) return;
    add(members, std::to_string(sum) + " of the " + std::to_string(capacity) + " slots of " +
                     resource + " are held at once, the last ones by " + describe(*active.back()));
  }

  void add(const std::vector<const Belief*>& beliefs, const std::string& what) {
    for (std::size_t i = 0; i + 1 < beliefs.size(); ++i) {
      if (allowed(index_, *beliefs[i], *beliefs.back())) {
        ++finding_.allowed;
        return;
      }
    }
    finding_.violations.push_back({what, events_of(beliefs)});
  }

  [[nodiscard]] std::vector<Event> events_of(const std::vector<const Belief*>& beliefs) const {
    std::vector<const Event*> events;
    for (const auto* belief : beliefs) {
      if (const auto* call = index_.call(belief->op)) {
        events.push_back(call->ask);
        if (call->told != nullptr) events.push_back(call->told);
      }
      events.push_back(belief->holds);
      if (belief->end != nullptr) events.push_back(belief->end);
      // The look that says that it was still held when the other one came.
      for (const auto* seen : index_.leases().at(belief->lease).seen) {
        if (number(*seen, "until") >= belief->to) {
          events.push_back(seen);
          break;
        }
      }
    }
    return part_of(std::move(events));
  }

  const Index& index_;
  Finding& finding_;
};

}  // namespace

Finding exclusion(const Index& index) {
  Finding finding{.name = "exclusion"};
  for (const auto& [resource, beliefs] : index.beliefs()) {
    Sweep(index, finding).over(resource, beliefs);
  }
  return finding;
}

}  // namespace torture::checks
