#include "interlock/log.hpp"

#include <algorithm>

#include "observe/record.hpp"
#include "observe/words.hpp"

namespace interlock {

namespace {

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// What `elapsed` measures.
std::string_view time_key(Event event) {
  switch (event) {
    case Event::granted:
    case Event::timed_out:
    case Event::refused:
    case Event::found:
      return "waited_ms";
    case Event::released:
    case Event::release_failed:
    case Event::detached:
    case Event::lost:
      return "held_ms";
    case Event::renewed:
    case Event::renewal_failed:
      return "left_ms";
    default:
      return {};
  }
}

void add_lock(observe::Record& record, const Observation& seen) {
  record.add("lock", seen.resource);
  const auto named = std::count_if(seen.claim.parts.begin(), seen.claim.parts.end(),
                                   [](const Part& part) { return !part.ancestor; });
  if (named > 1) record.add("locks", named);
  if (!seen.claim.owner.empty()) record.add("owner", seen.claim.owner.brief());
  if (seen.claim.who && !seen.claim.who->label.empty()) record.add("label", seen.claim.who->label);
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "?";
}

LogLevel level_of(const Observation& seen) noexcept {
  switch (seen.event) {
    case Event::asked:
    case Event::queued:
    case Event::granted:
    case Event::renewed:
    case Event::released:
      return LogLevel::debug;
    case Event::opened:
    case Event::store_back:
    case Event::adopted:
    case Event::detached:
    case Event::found:
      return LogLevel::info;
    case Event::timed_out:
      if (seen.error != nullptr && seen.error->errc() == Errc::busy) return LogLevel::debug;
      if (seen.error != nullptr && seen.error->errc() == Errc::cancelled) return LogLevel::info;
      return LogLevel::warning;
    case Event::renewal_failed:
    case Event::release_failed:
    case Event::cleanup_failed:
    case Event::store_down:
    case Event::warned:
      return LogLevel::warning;
    case Event::refused:
    case Event::lost:
      return LogLevel::error;
  }
  return LogLevel::error;
}

Log::Log(LogSink sink, LogOptions options) : sink_(std::move(sink)), options_(options) {}

void Log::on(const Observation& seen) noexcept {
  try {
    const auto level = level_of(seen);
    if (level < options_.level) return;
    observe::Record record(options_.format);
    record.add("event", to_string(seen.event));
    if (!seen.resource.empty()) add_lock(record, seen);
    if (seen.event == Event::queued) record.add("ahead", static_cast<std::int64_t>(seen.place));
    if (seen.limit) record.add("limit_ms", milliseconds(*seen.limit));
    const bool has_ttl = seen.event == Event::opened && seen.claim.ttl > Duration::zero();
    if (seen.event == Event::asked || has_ttl) record.add("ttl_ms", milliseconds(seen.claim.ttl));
    if (const auto key = time_key(seen.event); !key.empty()) {
      record.add(key, milliseconds(std::max(seen.elapsed, Duration::zero())));
    }
    if (seen.error != nullptr) {
      // A warning has no reason: nothing failed.
      if (seen.event != Event::warned) record.add("reason", observe::word(seen.error->errc()));
      record.add("error", seen.error->message());
    }
    record.add("store", seen.error != nullptr && !seen.error->node().empty() ? seen.error->node()
                                                                             : seen.store->where);
    sink_(level, std::move(record).finish());
  } catch (...) {  // a log line is not worth a lock
  }
}

}  // namespace interlock
