// What --verbose, --log-level and --log-format ask for: the library's log, on stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "interlock/log.hpp"

namespace cli {

struct Logging {
  /// Empty: nobody asked for a log.
  std::optional<interlock::LogLevel> level;
  interlock::LogFormat format = interlock::LogFormat::logfmt;
};

void add_logging(CLI::App& app, Logging& logging);

/// Once, before anything is logged.
void start_logging(const Logging& logging);
/// Tells the log what happens to locks; null if nobody asked for it.
std::shared_ptr<interlock::Observer> make_log(const Logging& logging);

/// Something that is on record whether a log was asked for or not. `event` in one word.
void log_warning(const Logging& logging, const std::string& event, const std::string& text);

}  // namespace cli
