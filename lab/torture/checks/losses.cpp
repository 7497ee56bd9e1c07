#include <algorithm>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

/// Told as lost, or the answer to what was done with it.
const Event* loss_of(const Index& index, const Lease& lease) {
  const Event* first = lease.lost.empty() ? nullptr : lease.lost.front();
  for (const auto at : lease.calls) {
    const auto& call = index.calls()[at];
    const bool refused = call.verb == "extend" || call.verb == "downgrade" || call.verb == "tie";
    const bool lost = call.answer == "lost" || (call.answer == "failed" && call.errc == "lost") ||
                      (call.answer == "no" && refused);
    if (lost && !call.acquires() && call.verb != "adopt" &&
        (first == nullptr || call.to() < first->t)) {
      first = call.told;
    }
  }
  return first;
}

bool given_up(const Index& index, const Lease& lease, const Event& loss) {
  return std::any_of(lease.calls.begin(), lease.calls.end(), [&](std::size_t at) {
    const auto& call = index.calls()[at];
    return (call.verb == "release" || call.verb == "detach") && call.to() < loss.t;
  });
}

/// Two leases of one owner, by a token that was adopted: what ends one ends the other.
bool shared_with_another(const Index& index, const Lease& lease) {
  return std::any_of(index.leases().begin(), index.leases().end(), [&](const auto& each) {
    const auto& other = each.second;
    return &other != &lease &&
           std::any_of(other.owners.begin(), other.owners.end(), [&](const std::string& owner) {
             return std::count(lease.owners.begin(), lease.owners.end(), owner) > 0;
           });
  });
}

bool has_reason(const Index& index, const Lease& lease, const Event& loss) {
  // It ends when its time is over.
  if (!lease.renewed) return true;
  for (const auto& owner : lease.owners) {
    if (const auto* by = index.broken(owner); by != nullptr && by->t <= loss.t) return true;
  }
  std::int64_t seen = loss.t;
  for (const auto* event : lease.seen) {
    if (event->t <= loss.t) seen = event->t;
  }
  return index.disturbed(seen - lease.ttl, loss.t) != nullptr ||
         index.stalled(lease.worker, seen - lease.ttl, loss.t, lease.ttl / 8) ||
         given_up(index, lease, loss) || shared_with_another(index, lease);
}

}  // namespace

Finding losses(const Index& index) {
  Finding finding{.name = "losses"};
  for (const auto& [id, lease] : index.leases()) {
    ++finding.looked_at;
    const auto* loss = loss_of(index, lease);
    if (loss == nullptr) continue;
    ++finding.figures["lost"];
    if (has_reason(index, lease, *loss)) continue;
    auto why = text(*loss, "reason");
    if (why.empty()) why = text(*loss, "text");
    std::vector<const Event*> events{loss};
    if (!lease.seen.empty()) events.push_back(lease.seen.front());
    if (lease.seen.size() > 1) events.push_back(lease.seen.back());
    finding.violations.push_back({"lease " + id + " was lost, and nothing disturbed it: " +
                                      (why.empty() ? "no reason given" : why),
                                  part_of(std::move(events))});
  }
  return finding;
}

}  // namespace torture::checks
