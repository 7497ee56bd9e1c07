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
    }
    bell_.ring();
  } catch (...) {  // never worth a lock
  }
}

std::optional<interlock::Owner> Events::owner() const {
  const std::lock_guard lock(mutex_);
  return owner_;
}

std::string Events::renewal_problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace cli
