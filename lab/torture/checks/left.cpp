#include "checks/checks.hpp"

namespace torture::checks {

Finding left(const Index& index) {
  Finding finding{.name = "left behind"};
  finding.looked_at = index.of_kind("calm").size();
  for (const auto* event : index.of_kind("left")) {
    ++finding.looked_at;
    // Who has just ended in order looks for what lasts for many minutes.
    if (!event->worker.empty() && index.brought_back(event->t)) {
      ++finding.allowed;
      continue;
    }
    const auto what = event->fields.find("what");
    finding.violations.push_back({"the store still shows " +
                                      (what == event->fields.end() ? "something"
                                       : what->is_string()         ? what->get<std::string>()
                                                                   : what->dump()) +
                                      " after everybody has left",
                                  part_of({event})});
  }
  return finding;
}

}  // namespace torture::checks
