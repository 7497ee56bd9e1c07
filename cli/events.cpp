#include "events.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "interlock/duration.hpp"
#include "terminal.hpp"

namespace cli {

using interlock::Event;

void start_logging(bool verbose) {
  auto logger = spdlog::stderr_logger_mt("interlock");
  logger->set_pattern("interlock: %Y-%m-%dT%H:%M:%S.%e %l: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

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
    if (!verbose_) return;
    if (seen.event == Event::warned && seen.error != nullptr) {
      spdlog::warn("{} [{}]", printable(seen.error->message()), printable(seen.error->node()));
      return;
    }
    std::string names;
    for (const auto& part : seen.claim.parts) {
      if (!part.ancestor) names += (names.empty() ? "" : ", ") + part.resource;
    }
    std::string more;
    if (seen.event == Event::queued) more += fmt::format(", {} ahead", seen.place);
    if (seen.elapsed > interlock::Duration::zero()) {
      more += fmt::format(", {}", interlock::format_duration(seen.elapsed));
    }
    if (seen.error != nullptr) more += fmt::format(": {}", seen.error->message());
    spdlog::info("{} {} ({}){}", interlock::to_string(seen.event), printable(names),
                 seen.claim.owner.brief(), printable(more));
  } catch (...) {  // a log line is not worth a lock
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
