// Turns what happens to locks into log lines. The library writes nothing by itself: this hands each
// line to whatever you log with.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "interlock/observer.hpp"

namespace interlock {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

std::string_view to_string(LogLevel level) noexcept;

/// How much an event matters:
///
///     debug    asked, queued, granted, renewed, released; busy (a one-shot attempt that failed)
///     info     opened, store back, adopted, detached, cancelled, found
///     warning  timed out, tries exhausted, renewal failed, release failed, store down, warned
///     error    refused, lost
LogLevel level_of(const Observation& observation) noexcept;

enum class LogFormat : std::uint8_t {
  logfmt,  ///< `event=granted lock=nightly waited_ms=12`: as easy to read as to parse
  json,    ///< `{"event":"granted","lock":"nightly","waited_ms":12}`
};

/// Called from any thread, also from several at once, and from the one that watches every deadline:
/// be quick, as asynchronous loggers are. The line is good during the call only, and has no newline.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

struct LogOptions {
  LogLevel level = LogLevel::info;  ///< what matters less is left out
  LogFormat format = LogFormat::logfmt;
};

/// One line for each event, as keys and values. Time and level are left to the logger:
///
///     auto log = std::make_shared<interlock::Log>([](interlock::LogLevel, std::string_view line) {
///       my_logger.write(line);
///     });
///     auto locks = interlock::connect(url, {.observer = log});
///
/// `event` is first. A lock's events have `lock` (the first name; `locks` says how many, if there
/// are more), `owner` (not all of it: nobody can release by it), and `label` if there is one. Times
/// are `limit_ms`, `waited_ms`, `held_ms` or `left_ms`; failures have `reason` and `error`. A store
/// is named by `store`, without secrets. Keys may be added, and are not taken away.
class Log final : public Observer {
 public:
  explicit Log(LogSink sink, LogOptions options = {});

  /// What the sink throws is ignored.
  void on(const Observation& observation) noexcept override;

 private:
  const LogSink sink_;
  const LogOptions options_;
};

}  // namespace interlock
