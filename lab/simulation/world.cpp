#include "world.hpp"

#include <cstdio>

namespace simulation {

void World::run_until(Time end) {
  while (!events_.empty() && events_.top().when <= end && check_.empty()) {
    // The top is taken away right after: nobody sees what is left of it.
    auto event = std::move(const_cast<Event&>(events_.top()));  // NOLINT
    events_.pop();
    now_ = event.when;
    event.what();
  }
  if (check_.empty()) now_ = std::max(now_, end);
}

void World::violate(std::string check, std::string what) {
  if (!check_.empty()) return;
  trace([&] { return "VIOLATION of " + check + ": " + what; });
  check_ = std::move(check);
  what_ = std::move(what);
}

std::string World::stamp() const {
  char text[32];
  std::snprintf(text, sizeof text, "%10.3f ms  ", static_cast<double>(now_.count()) / 1e6);
  return text;
}

}  // namespace simulation
