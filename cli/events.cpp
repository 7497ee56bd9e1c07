#include "events.hpp"

namespace cli {

using interlock::Event;

void Events::on(const interlock::Observation& seen) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (seen.event == Event::asked || seen.event == Event::queued) owner_ = seen.claim.owner;
      if (seen.event == Event::renewed) problem_.clear();
      if (seen.event == Event::renewal_failed && seen.error != nullptr) {
        problem_ = seen.error->message();
      }
      if (seen.event == Event::store_back) store_problem_.clear();
      if (seen.event == Event::store_down && seen.error != nullptr)
        store_problem_ = seen.error->message() + " [" + seen.error->node() + "]";
    }
    bell_.ring();
  } catch (...) {  // never worth a lock
  }
}

std::optional<interlock::Owner> Events::owner() const {
  const std::lock_guard lock(mutex_);
  return owner_;
}

std::string Events::store_problem() const {
  const std::lock_guard lock(mutex_);
  return store_problem_;
}

std::string Events::renewal_problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace cli
