#include "checks/checks.hpp"

namespace torture::checks {

namespace {

void durations(const Index& index, Finding& finding) {
  const auto& tolerances = index.tolerances();
  for (const auto& call : index.calls()) {
    // How long these take is not the library's affair.
    if (call.told == nullptr || call.via == "command" || call.via == "recipe") continue;
    if (call.acquires() && call.form == "wait") continue;
    ++finding.looked_at;
    const bool bounded = call.form == "bounded" && call.limit;
    const auto most = bounded ? *call.limit + tolerances.bound : tolerances.longest_call;
    const auto took =
        call.to() - call.from() - index.stalled_for(call.worker, call.from(), call.to());
    if (took <= most) continue;
    finding.violations.push_back(
        {"the " + call.verb + " " + call.op + " took " + text_of(took) +
             (bounded ? ", its limit was " + text_of(*call.limit) : "; it had nothing to wait for"),
         part_of({call.ask, call.told})});
  }
}

void waits_without_end(const Index& index, Finding& finding) {
  for (const auto& call : index.calls()) {
    if (call.told != nullptr) continue;
    const auto life = index.lives().find(call.worker);
    // What a killed process waited for nobody knows; told once has the ones that ended in order.
    if (life != index.lives().end() &&
        (life->second.end != nullptr || life->second.killed != nullptr)) {
      continue;
    }
    finding.violations.push_back(
        {"the " + call.verb + " " + call.op + " has never ended", part_of({call.ask})});
  }
}

}  // namespace

Finding ends(const Index& index) {
  Finding finding{.name = "ends"};
  durations(index, finding);
  for (const auto* kind : {"hung", "crashed"}) {
    for (const auto* event : index.of_kind(kind)) {
      const auto status = number(*event, "status");
      finding.violations.push_back(
          {"worker " + text(*event, "worker") +
               (event->k == "hung" ? " did not end when it was asked to"
                                   : " ended by itself, with status " + std::to_string(status)),
           part_of({event})});
    }
  }
  // A round that was broken off says nothing about them.
  if (!index.of_kind("calm").empty()) waits_without_end(index, finding);
  return finding;
}

}  // namespace torture::checks
