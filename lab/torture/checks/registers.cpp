#include <algorithm>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

/// One number: its writes in the order in which the register took them.
class Register {
 public:
  Register(std::string resource, bool fenced, Finding& finding)
      : resource_(std::move(resource)), fenced_(fenced), finding_(finding) {}

  void write(const Event& event) {
    const auto answer = text(event, "answer");
    if (answer == "unknown") return unknown_.push_back(&event);
    if (answer != "yes") {
      ++finding_.figures["refused"];
      return;
    }
    ++accepted_;
    const auto seen = number(event, "seen");
    const auto fence = number(event, "fence");
    if (fenced_ && last_ != nullptr && fence < number(*last_, "fence")) {
      add("the register of " + resource_ + " took a stale write: fence " + std::to_string(fence) +
              " after " + std::to_string(number(*last_, "fence")),
          event);
    }
    if (seen != value_ && !unknown_wrote(seen)) {
      if (fenced_) {
        add("the fenced register of " + resource_ + " lost an update: its writer had seen " +
                std::to_string(seen) + " when it stood at " + std::to_string(value_),
            event);
      }
      ++finding_.figures[fenced_ ? "lost updates with fence" : "lost updates without fence"];
    }
    value_ = number(event, "wrote");
    last_ = &event;
  }

  /// After all writes.
  void stands_at(const Event& event) {
    const auto value = number(event, "value");
    const auto most = accepted_ + static_cast<std::int64_t>(unknown_.size());
    if (!fenced_ || (value >= accepted_ && value <= most)) return;
    add("the fenced register of " + resource_ + " stands at " + std::to_string(value) + " after " +
            std::to_string(accepted_) + " writes and " + std::to_string(unknown_.size()) +
            " whose answer nobody learned",
        event);
  }

 private:
  [[nodiscard]] bool unknown_wrote(std::int64_t seen) const {
    return std::any_of(unknown_.begin(), unknown_.end(),
                       [&](const Event* write) { return number(*write, "wrote") == seen; });
  }

  void add(const std::string& what, const Event& event) {
    std::vector<const Event*> events{&event};
    if (last_ != nullptr) events.push_back(last_);
    finding_.violations.push_back({what, part_of(std::move(events))});
  }

  std::string resource_;
  bool fenced_;
  Finding& finding_;
  std::vector<const Event*> unknown_{};
  std::int64_t value_ = 0;
  std::int64_t accepted_ = 0;
  const Event* last_ = nullptr;
};

}  // namespace

Finding registers(const Index& index) {
  Finding finding{.name = "register"};
  finding.figures = {{"lost updates with fence", 0}, {"lost updates without fence", 0}};
  std::map<std::pair<std::string, bool>, Register> all;
  for (const auto& event : index.events()) {
    if (event.k != "writes" && event.k != "register") continue;
    const auto resource = text(event, "r");
    const auto fenced = flag(event, "fenced");
    auto& its =
        all.try_emplace(std::pair(resource, fenced), resource, fenced, finding).first->second;
    if (event.k == "register") {
      its.stands_at(event);
    } else {
      ++finding.looked_at;
      its.write(event);
    }
  }
  return finding;
}

}  // namespace torture::checks
