#include "checks/checks.hpp"

namespace torture::checks {

namespace {

void answers_of_calls(const Index& index, Finding& finding) {
  std::map<std::string, const Event*> told;
  for (const auto* event : index.of_kind("told")) {
    const auto op = text(*event, "op");
    const auto* call = index.call(op);
    ++finding.looked_at;
    if (call == nullptr) {
      finding.violations.push_back(
          {"an answer to " + op + ", which nobody asked", part_of({event})});
      continue;
    }
    const auto [at, first] = told.emplace(op, event);
    if (first) continue;
    finding.violations.push_back({"the " + call->verb + " " + op +
                                      " was answered twice: " + text(*at->second, "answer") +
                                      ", and " + text(*event, "answer"),
                                  part_of({call->ask, at->second, event})});
  }
  for (const auto& call : index.calls()) {
    const auto life = index.lives().find(call.worker);
    if (call.told != nullptr || life == index.lives().end() || life->second.end == nullptr)
      continue;
    finding.violations.push_back(
        {"the " + call.verb + " " + call.op + " was not answered before its worker ended in order",
         part_of({call.ask, life->second.end})});
  }
}

void losses_of_leases(const Index& index, Finding& finding) {
  for (const auto& [id, lease] : index.leases()) {
    finding.looked_at += lease.lost.size();
    if (lease.lost.size() > 1) {
      finding.violations.push_back(
          {"the loss of lease " + id + " was told " + std::to_string(lease.lost.size()) + " times",
           part_of(lease.lost)});
    }
    for (const auto at : lease.calls) {
      const auto& call = index.calls()[at];
      if (call.verb != "release" || call.answer != "released") continue;
      for (const auto* lost : lease.lost) {
        // A callback that did not get to run may have begun before the release.
        if (lost->t <= call.to() || index.stalled(lease.worker, call.from(), lost->t, 0)) continue;
        finding.violations.push_back({"lease " + id + " was told as lost " +
                                          text_of(lost->t - call.to()) +
                                          " after its release was answered with \"released\"",
                                      part_of({call.ask, call.told, lost})});
      }
    }
  }
}

}  // namespace

Finding told_once(const Index& index) {
  Finding finding{.name = "told once"};
  answers_of_calls(index, finding);
  losses_of_leases(index, finding);
  return finding;
}

}  // namespace torture::checks
