#include <optional>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

struct Figures {
  const Event* begin = nullptr;
  const Event* end = nullptr;
  const Event* idle = nullptr;
};

class Comparison {
 public:
  Comparison(std::string worker, const Figures& its, Finding& finding)
      : worker_(std::move(worker)), its_(its), finding_(finding) {}

  void grown(const char* what, std::int64_t margin) {
    const auto before = number(*its_.begin, what);
    const auto after = number(*last(), what);
    if (after <= before + margin) return;
    finding_.violations.push_back({"worker " + worker_ + " began with " + what + " " +
                                       std::to_string(before) + " and ended with " +
                                       std::to_string(after) + " (" + std::to_string(margin) +
                                       " more would do)",
                                   part_of({its_.begin, last()})});
  }

  void spins(double most) {
    if (its_.end == nullptr || its_.idle == nullptr) return;
    const auto span = its_.idle->t - its_.end->t;
    const auto used = number(*its_.idle, "cpu") - number(*its_.end, "cpu");
    if (span <= 0 || static_cast<double>(used) <= most * static_cast<double>(span)) return;
    finding_.violations.push_back({"worker " + worker_ + " had nothing to do for " + text_of(span) +
                                       " and used the processor for " + text_of(used),
                                   part_of({its_.end, its_.idle})});
  }

 private:
  [[nodiscard]] const Event* last() const { return its_.idle != nullptr ? its_.idle : its_.end; }

  std::string worker_;
  const Figures& its_;
  Finding& finding_;
};

}  // namespace

Finding figures(const Index& index) {
  Finding finding{.name = "figures"};
  std::map<std::string, Figures> workers;
  for (const auto* event : index.of_kind("figures")) {
    auto& its = workers[event->worker];
    const auto when = text(*event, "when");
    (when == "begin" ? its.begin : when == "idle" ? its.idle : its.end) = event;
  }
  const auto& tolerances = index.tolerances();
  for (const auto& [worker, its] : workers) {
    // Killed, most likely.
    if (its.begin == nullptr || (its.end == nullptr && its.idle == nullptr)) continue;
    ++finding.looked_at;
    Comparison comparison(worker, its, finding);
    comparison.grown("threads", tolerances.more_threads);
    comparison.grown("descriptors", tolerances.more_descriptors);
    comparison.grown("memory", tolerances.more_memory);
    comparison.spins(tolerances.most_cpu);
  }
  return finding;
}

}  // namespace torture::checks
