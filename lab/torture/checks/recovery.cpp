#include "checks/checks.hpp"

namespace torture::checks {

Finding recovery(const Index& index) {
  Finding finding{.name = "recovery"};
  for (const auto* probe : index.of_kind("probe")) {
    ++finding.looked_at;
    const auto within = number(*probe, "within");
    const auto took = number(*probe, "took");
    const auto answer = text(*probe, "answer");
    auto& longest = finding.figures["longest, ms"];
    longest = std::max(longest, took / kMillisecond);
    if (answer == "granted" && took <= within) continue;
    finding.violations.push_back({text(*probe, "r") + " was to be granted within " +
                                      text_of(within) +
                                      " after all faults were healed; the answer was \"" + answer +
                                      "\" after " + text_of(took),
                                  part_of({probe})});
  }
  return finding;
}

}  // namespace torture::checks
