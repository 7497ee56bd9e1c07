#include "checks/presence.hpp"

#include <algorithm>

namespace torture::checks {

namespace {

bool takes(const Call& call) {
  return call.acquires() || call.verb == "adopt" || call.via == "recipe" || call.via == "command";
}

bool ends_lease(const Call& call) {
  return call.verb == "release" || call.verb == "drop" || call.verb == "unlock" ||
         call.verb == "detach";
}

bool in_the_way(const Presence& presence, const Part& part, const Call& call) {
  if (presence.mode == Mode::shared && part.mode == Mode::shared) return false;
  const bool slots = presence.mode == Mode::slots || part.mode == Mode::slots;
  return slots || call.identity.empty() || presence.call->identity != call.identity;
}

}  // namespace

Presences::Presences(const Index& index) : index_(index) {
  for (const auto& [resource, beliefs] : index_.beliefs()) {
    for (const auto& belief : beliefs) beliefs_[belief.op].push_back(&belief);
  }
  for (const auto& call : index_.calls()) {
    if (!takes(call)) continue;
    const auto to = end_of(call);
    // A reader that asks for more waits as a writer.
    bool upgrades = false;
    if (const auto lease = index_.leases().find(call.op); lease != index_.leases().end()) {
      for (const auto at : lease->second.calls) {
        upgrades = upgrades || index_.calls()[at].verb.starts_with("upgrade");
      }
    }
    for (const auto& part : parts_of(call)) {
      const auto mode = upgrades && part.mode == Mode::shared ? Mode::exclusive : part.mode;
      by_resource_[part.r].push_back({&call, call.from(), to, mode});
    }
  }
}

std::vector<Part> Presences::parts_of(const Call& call) const {
  auto parts = call.parts;
  if (call.hierarchy) {
    for (const auto& part : call.parts) {
      for (auto& name : above(part.r)) parts.push_back({.r = name, .mode = Mode::shared});
    }
  }
  // Who adopts a lease learns only then what it is of.
  if (const auto held = beliefs_.find(call.op); held != beliefs_.end() && call.parts.empty()) {
    for (const auto* belief : held->second) parts.push_back(belief->part);
  }
  return parts;
}

std::int64_t Presences::end_of(const Call& call) const {
  const auto& tolerances = index_.tolerances();
  const auto reach = call.ttl + tolerances.forgotten;
  const auto life = index_.lives().find(call.worker);
  if (call.told == nullptr) {
    const auto* killed = life == index_.lives().end() ? nullptr : life->second.killed;
    return killed == nullptr ? kNever : killed->t + reach;
  }
  const bool holds = beliefs_.contains(call.op) || call.answer == "granted" || call.answer == "yes";
  if (holds) return end_of_lease(call);
  const bool doubtful = call.answer == "failed" || index_.disturbed(call.from(), call.to()) ||
                        index_.stalled(call.worker, call.from(), call.to());
  return call.to() + (doubtful ? reach : tolerances.cleaned_up);
}

std::int64_t Presences::end_of_lease(const Call& call) const {
  const auto& tolerances = index_.tolerances();
  const auto held = beliefs_.find(call.op);
  const auto& id = held == beliefs_.end() ? call.op : held->second.front()->lease;
  const auto found = index_.leases().find(id);
  // A command or a recipe may hold more than its history tells.
  if (call.via == "recipe" || call.via == "command" || found == index_.leases().end())
    return kNever;
  const auto& lease = found->second;
  const auto reach = lease.ttl + tolerances.forgotten;
  for (const auto at : lease.calls) {
    const auto& last = index_.calls()[at];
    if (!ends_lease(last) || last.told == nullptr) continue;
    if (last.verb == "detach") return std::max(last.to(), lease.until) + reach;
    if (last.verb == "release" && last.answer == "released") return last.to();
    const bool sure = last.answer == "yes" && index_.disturbed(call.from(), last.to()) == nullptr;
    return last.to() + (sure ? tolerances.cleaned_up : reach);
  }
  const auto life = index_.lives().find(call.worker);
  const auto* killed = life == index_.lives().end() ? nullptr : life->second.killed;
  if (killed != nullptr) return std::max(killed->t, lease.until) + reach;
  return kNever;
}

const Presence* Presences::rival(const Call& call, std::int64_t from, std::int64_t to) const {
  auto parts = parts_of(call);
  // An upgrade is about what its lease holds.
  if (!call.lease.empty() && !takes(call)) {
    if (const auto* given = index_.call(call.lease)) {
      parts = parts_of(*given);
      for (auto& part : parts) part.mode = Mode::exclusive;
    }
  }
  for (const auto& part : parts) {
    const auto there = by_resource_.find(part.r);
    if (there == by_resource_.end()) continue;
    for (const auto& presence : there->second) {
      if (presence.from > to) break;
      if (presence.to < from || presence.call == &call || presence.call->op == call.lease) continue;
      if (in_the_way(presence, part, call)) return &presence;
    }
  }
  return nullptr;
}

}  // namespace torture::checks
