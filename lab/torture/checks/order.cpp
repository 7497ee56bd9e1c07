#include <algorithm>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

// Waiters whose place in line is certain: for one exclusive resource, no identity, no names above it.
bool waits_plainly(const Call& call) {
  return call.acquires() && (call.form == "wait" || call.form == "bounded") &&
         call.via != "command" && call.via != "recipe" && call.told != nullptr &&
         call.cancel == nullptr && call.identity.empty() && !call.hierarchy &&
         call.parts.size() == 1 && call.parts.front().mode == Mode::exclusive;
}

class Line {
 public:
  Line(const Index& index, Finding& finding) : index_(index), finding_(finding) {}

  /// In the order in which they asked.
  void look_at(const Call& late) {
    const auto& tolerances = index_.tolerances();
    std::erase_if(before_, [&](const Call* early) { return early->to() < late.from(); });
    if (late.answer == "granted") {
      for (const auto* early : before_) {
        if (early->priority != late.priority) continue;
        if (early->from() + tolerances.order_asked > late.from()) break;
        if (undisturbed(*early, late)) compare(*early, late);
      }
    }
    if (late.answer == "granted" || late.answer == "timed_out") before_.push_back(&late);
  }

 private:
  [[nodiscard]] bool undisturbed(const Call& early, const Call& late) const {
    const auto from = early.from();
    const auto to = std::max(early.to(), late.to());
    return index_.disturbed(from, to) == nullptr && !index_.stalled(early.worker, from, to) &&
           !index_.stalled(late.worker, from, to);
  }

  void compare(const Call& early, const Call& late) {
    ++finding_.looked_at;
    if (late.to() + index_.tolerances().order_granted >= early.to()) return;
    finding_.violations.push_back(
        {late.op + " was granted " + early.parts.front().r + " " + text_of(early.to() - late.to()) +
             " before " + early.op + " was " +
             (early.answer == "granted" ? "granted it" : "told that its time is over") +
             ", which had asked " + text_of(late.from() - early.from()) + " earlier and waited on",
         part_of({early.ask, late.ask, late.told, early.told})});
  }

  const Index& index_;
  Finding& finding_;
  std::vector<const Call*> before_{};  ///< that may still wait
};

}  // namespace

Finding order(const Index& index) {
  Finding finding{.name = "order"};
  std::map<std::string, Line> lines;
  for (const auto& call : index.calls()) {
    if (!waits_plainly(call)) continue;
    lines.try_emplace(call.parts.front().r, index, finding).first->second.look_at(call);
  }
  return finding;
}

}  // namespace torture::checks
