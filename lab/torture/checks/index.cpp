#include "checks/index.hpp"

#include <algorithm>
#include <array>

namespace torture::checks {

namespace {

Mode mode_of(const Json& fields) {
  const auto m = fields.value("m", std::string());
  if (m == "shared") return Mode::shared;
  return m == "slots" ? Mode::slots : Mode::exclusive;
}

Part part_from(const Json& fields) {
  return {.r = fields.value("r", std::string()),
          .mode = mode_of(fields),
          .n = fields.value("n", std::int64_t{1}),
          .c = fields.value("c", std::int64_t{0})};
}

Call call_from(const Event& event) {
  Call call;
  call.op = text(event, "op");
  call.worker = event.worker;
  call.verb = text(event, "verb");
  call.via = text(event, "via");
  call.form = text(event, "form");
  call.lease = text(event, "lease");
  call.identity = text(event, "identity");
  call.hand = number(event, "hand");
  call.ttl = number(event, "ttl");
  call.priority = number(event, "priority");
  if (const auto limit = number(event, "limit", -1); limit >= 0) call.limit = limit;
  call.hierarchy = flag(event, "hierarchy");
  call.renewed = flag(event, "renew", true);
  if (const auto parts = event.fields.find("parts"); parts != event.fields.end()) {
    for (const auto& part : *parts) call.parts.push_back(part_from(part));
  }
  call.ask = &event;
  return call;
}

bool overlap(const Disturbance& disturbance, std::int64_t from, std::int64_t to) {
  return disturbance.from <= to && disturbance.to >= from;
}

}  // namespace

std::string text(const Event& event, const char* field) {
  const auto at = event.fields.find(field);
  return at != event.fields.end() && at->is_string() ? at->get<std::string>() : "";
}

std::int64_t number(const Event& event, const char* field, std::int64_t otherwise) {
  const auto at = event.fields.find(field);
  return at != event.fields.end() && at->is_number() ? at->get<std::int64_t>() : otherwise;
}

bool flag(const Event& event, const char* field, bool otherwise) {
  const auto at = event.fields.find(field);
  return at != event.fields.end() && at->is_boolean() ? at->get<bool>() : otherwise;
}

// As the library splits names: a slash at either end, or next to another one, separates nothing.
std::vector<std::string> above(const std::string& resource) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i + 1 < resource.size(); ++i) {
    if (resource[i] == '/' && resource[i - 1] != '/' && resource[i + 1] != '/') {
      names.push_back(resource.substr(0, i));
    }
  }
  return names;
}

Index::Index(const std::vector<Event>& events, Tolerances tolerances)
    : events_(events), tolerances_(tolerances) {
  for (const auto& event : events_) read(event);
  collect();
}

void Index::read(const Event& event) {
  const auto op = text(event, "op");
  const auto lease = text(event, "lease");
  if (event.k == "ask") {
    by_op_.emplace(op, calls_.size());
    calls_.push_back(call_from(event));
  } else if (event.k == "told" || event.k == "cancel") {
    const auto at = by_op_.find(op);
    if (at == by_op_.end()) return;
    auto& call = calls_[at->second];
    auto& first = event.k == "told" ? call.told : call.cancel;
    if (first != nullptr) return;
    first = &event;
    if (event.k == "told") {
      call.answer = text(event, "answer");
      call.errc = text(event, "errc");
    }
  } else if (event.k == "holds") {
    believe(event);
  } else if (event.k == "valid") {
    auto& its = leases_[lease];
    its.seen.push_back(&event);
    its.until = std::max(its.until, number(event, "until"));
    for (const auto at : held_[lease]) {
      all_[at].to = std::max(all_[at].to, number(event, "until"));
    }
  } else if (event.k == "leaves") {
    end_beliefs(lease, text(event, "r"), event);
  } else if (event.k == "lost") {
    leases_[lease].lost.push_back(&event);
    end_beliefs(lease, "", event);
  } else if (event.k == "breaks") {
    const auto owner = text(event, "owner");
    broken_.emplace(owner, &event);
    name_successor(owner, text(event, "r"));
    for (auto& [id, each] : leases_) {
      if (std::count(each.owners.begin(), each.owners.end(), owner) > 0) end_beliefs(id, "", event);
    }
  } else if (event.k == "round") {
    const auto promise = event.fields.find("promise");
    if (promise != event.fields.end())
      recovers_within_ = promise->value("granted_within", std::int64_t{0});
    timeout_ = number(event, "timeout");
  } else if (event.k == "stall") {
    lives_[event.worker].stalls.push_back(
        {.from = number(event, "from"), .to = event.t, .event = &event});
  } else if (event.k == "fault") {
    faults_.push_back({.from = number(event, "from", event.t),
                       .voids = flag(event, "voids"),
                       .disturbs = flag(event, "disturbs", true),
                       .brings_back = flag(event, "brings_back"),
                       .event = &event});
  } else if (event.k == "healed") {
    for (auto& fault : faults_) {
      if (number(*fault.event, "n") == number(event, "n")) fault.to = event.t;
    }
  } else if (event.k == "start") {
    lives_[event.worker].start = &event;
  } else if (event.k == "end" || event.k == "killed") {
    const auto worker = event.k == "end" ? event.worker : text(event, "worker");
    auto& life = lives_[worker];
    (event.k == "end" ? life.end : life.killed) = &event;
    for (auto& [id, each] : leases_) {
      if (each.worker == worker) end_beliefs(id, "", event);
    }
  } else if (event.k == "stopped") {
    lives_[text(event, "worker")].stalls.push_back({.from = event.t, .event = &event});
  } else if (event.k == "continued") {
    for (auto& stall : lives_[text(event, "worker")].stalls) {
      if (stall.to == kNever) stall.to = event.t;
    }
  }
}

void Index::believe(const Event& event) {
  Belief belief;
  belief.part = part_from(event.fields);
  belief.lease = text(event, "lease");
  belief.owner = text(event, "owner");
  belief.identity = text(event, "identity");
  belief.worker = event.worker;
  belief.op = text(event, "op");
  belief.from = event.t;
  belief.to = std::max(number(event, "until"), event.t);
  belief.asked = number(event, "asked", event.t);
  if (const auto fence = number(event, "fence"); fence > 0) {
    belief.fence = static_cast<std::uint64_t>(fence);
  }
  belief.adopted = flag(event, "adopted");
  belief.holds = &event;

  // Another mode of the same lease replaces the one before.
  end_beliefs(belief.lease, belief.part.r, event);
  auto& lease = leases_[belief.lease];
  lease.id = belief.lease;
  lease.worker = event.worker;
  lease.seen.push_back(&event);
  lease.until = std::max(lease.until, number(event, "until"));
  if (!belief.owner.empty()) lease.owners.push_back(belief.owner);
  // Evicted or killed before it was told: it is told too late.
  const auto life = lives_.find(event.worker);
  if (const auto* by = broken(belief.owner); by != nullptr) {
    belief.end = by;
    belief.to = belief.from;
  } else if (life != lives_.end() && life->second.killed != nullptr) {
    belief.end = life->second.killed;
    belief.to = belief.from;
  } else {
    held_[belief.lease].push_back(all_.size());
  }
  all_.push_back(std::move(belief));
}

// The store may have changed a lease's mode, and with it its owner, before the lease knows.
void Index::name_successor(const std::string& owner, const std::string& resource) {
  const auto known = std::any_of(leases_.begin(), leases_.end(), [&](const auto& each) {
    return std::count(each.second.owners.begin(), each.second.owners.end(), owner) > 0;
  });
  if (known) return;
  for (const auto& call : calls_) {
    if (call.verb != "downgrade" && !call.verb.starts_with("upgrade")) continue;
    const auto open = held_.find(call.lease);
    if (open == held_.end()) continue;
    const bool holds = std::any_of(open->second.begin(), open->second.end(),
                                   [&](std::size_t at) { return all_[at].part.r == resource; });
    if (holds) leases_[call.lease].owners.push_back(owner);
  }
}

void Index::end_beliefs(const std::string& lease, const std::string& resource, const Event& by) {
  const auto held = held_.find(lease);
  if (held == held_.end()) return;
  std::erase_if(held->second, [&](std::size_t at) {
    auto& belief = all_[at];
    if (!resource.empty() && belief.part.r != resource) return false;
    if (by.t <= belief.to) {
      belief.to = std::max(by.t, belief.from);
      belief.end = &by;
    }
    return true;
  });
}

// What is known only at the end: which call gave which lease, and what a lease's TTL was.
void Index::collect() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const auto& call = calls_[i];
    const auto& id = call.lease.empty() ? call.op : call.lease;
    const auto lease = leases_.find(id);
    if (lease == leases_.end()) continue;
    lease->second.calls.push_back(i);
    lease->second.ttl = std::max(lease->second.ttl, call.ttl);
    lease->second.renewed = lease->second.renewed && call.renewed;
  }
  for (auto& [id, lease] : leases_) {
    for (const auto* seen : lease.seen) {
      lease.ttl = std::max(lease.ttl, number(*seen, "until") - seen->t);
    }
  }
  std::map<std::string, bool> hierarchies;  // of owners, since a lease may be adopted
  const auto hierarchy = [&](const Belief& belief) {
    const auto* given = call(belief.op);
    auto yes = given != nullptr && given->hierarchy;
    for (const auto at : leases_.at(belief.lease).calls) yes = yes || calls_[at].hierarchy;
    if (belief.owner.empty()) return yes;
    auto& known = hierarchies[belief.owner];
    return known = known || yes;
  };
  for (auto& belief : all_) {
    belief.ttl = leases_.at(belief.lease).ttl;
    if (hierarchy(belief)) {
      auto copy = belief;
      copy.above = true;
      for (auto& name : above(belief.part.r)) {
        copy.part = {.r = name, .mode = Mode::shared};
        beliefs_[name].push_back(copy);
      }
    }
    const auto name = belief.part.r;
    beliefs_[name].push_back(std::move(belief));
  }
  for (auto& [name, beliefs] : beliefs_) {
    std::stable_sort(beliefs.begin(), beliefs.end(),
                     [](const Belief& a, const Belief& b) { return a.from < b.from; });
  }
  all_.clear();
  held_.clear();
}

std::vector<const Event*> Index::of_kind(std::string_view kind) const {
  std::vector<const Event*> found;
  for (const auto& event : events_) {
    if (event.k == kind) found.push_back(&event);
  }
  return found;
}

const Call* Index::call(const std::string& op) const {
  const auto at = by_op_.find(op);
  return at == by_op_.end() ? nullptr : &calls_[at->second];
}

const Event* Index::broken(const std::string& owner) const {
  const auto at = broken_.find(owner);
  return owner.empty() || at == broken_.end() ? nullptr : at->second;
}

const Event* Index::disturbed(std::int64_t from, std::int64_t to) const {
  for (const auto& fault : faults_) {
    // What has lost its data may take as long to come back as the store's documents say.
    const auto grace =
        fault.voids ? std::max(tolerances_.grace, recovers_within_) : tolerances_.grace;
    if (fault.disturbs && overlap(fault, from - grace, to)) return fault.event;
  }
  // A machine or a store that stood still is a fault that nobody ordered: servers fail over, connections are given up.
  const auto machine = lives_.find("");
  if (machine == lives_.end()) return nullptr;
  for (const auto& stall : machine->second.stalls) {
    if (stall.to - stall.from >= tolerances_.standstill &&
        overlap(stall, from - tolerances_.grace, to))
      return stall.event;
  }
  return nullptr;
}

bool Index::brought_back(std::int64_t by) const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](const auto& fault) { return fault.brings_back && fault.from < by; });
}

bool Index::stalled(const std::string& worker, std::int64_t from, std::int64_t to,
                    std::int64_t at_least) const {
  // The director's are of the whole machine.
  const auto found = [&](const std::string& whose) {
    const auto life = lives_.find(whose);
    return life != lives_.end() && std::any_of(life->second.stalls.begin(),
                                               life->second.stalls.end(), [&](const auto& stall) {
                                                 return overlap(stall, from, to) &&
                                                        stall.to - stall.from >= at_least;
                                               });
  };
  return found(worker) || found("");
}

std::int64_t Index::stalled_for(const std::string& worker, std::int64_t from,
                                std::int64_t to) const {
  std::int64_t sum = 0;
  const auto life = lives_.find(worker);
  if (life == lives_.end()) return 0;
  for (const auto& stall : life->second.stalls) {
    if (overlap(stall, from, to)) sum += std::min(to, stall.to) - std::max(from, stall.from);
  }
  return sum;
}

}  // namespace torture::checks
