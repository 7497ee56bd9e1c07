// What goes wrong with the surroundings of a worker.
#include <memory>
#include <stdexcept>

#include "crew.hpp"

namespace torture {

std::vector<Fault> Crew::clock_faults() {
  constexpr std::int64_t kMost = 15;
  std::vector<Fault> faults;
  if (clocks_.empty()) return faults;
  const auto step = [this](std::string name, std::int64_t by) {
    const auto chosen = std::make_shared<WallClock*>(nullptr);
    // Wall clocks decide nothing: nobody may notice.
    return Fault{.name = std::move(name),
                 .disturbs = false,
                 .begin =
                     [this, chosen, by](Random& random) {
                       const auto which = random() % clocks_.size();
                       *chosen = clocks_[which].get();
                       (*chosen)->set(by * (1 + static_cast<std::int64_t>(random() % kMost)));
                       return "worker " + members_[which].name;
                     },
                 .heal = [chosen] { (*chosen)->set(0); }};
  };
  faults.push_back(step("a worker's clock set forward", 1));
  faults.push_back(step("a worker's clock set back", -1));
  return faults;
}

std::vector<Fault> Crew::memory_faults() {
  if (memory_.empty()) return {};
  constexpr std::int64_t kOneOf = 100;
  const auto chosen = std::make_shared<SharedNumber*>(nullptr);
  return {{.name = "memory of a worker at its end",
           .begin =
               [this, chosen](Random& random) {
                 const auto which = random() % memory_.size();
                 *chosen = memory_[which].get();
                 (*chosen)->set(kOneOf);
                 return "worker " + members_[which].name;
               },
           .heal = [chosen] { (*chosen)->set(0); }}};
}

}  // namespace torture
