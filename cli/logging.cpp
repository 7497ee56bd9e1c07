#include "logging.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "standard_error.hpp"
#include "terminal.hpp"

namespace cli {

using interlock::LogFormat;
using interlock::LogLevel;

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// The logger adds time and level in front. In JSON that is one object with the rest.
std::string pattern(const Logging& logging) {
  if (!logging.level) return "interlock: %Y-%m-%dT%H:%M:%S.%e %l: %v";
  if (logging.format == LogFormat::logfmt) return "time=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v";
  return R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)";
}

std::string_view without_brace(std::string_view line) {
  return line.starts_with('{') ? line.substr(1) : line;
}

/// Drops a line if stderr has no room for it: the thread that renews the leases logs, too, and must not wait.
class DroppingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DroppingSink(const Logging& logging) : logging_(logging) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t lines;
    if (dropped_ > 0) {
      const auto text = told();
      formatter_->format({message.logger_name, spdlog::level::warn, text}, lines);
    }
    formatter_->format(message, lines);
    if (write_error({lines.data(), lines.size()}, std::chrono::milliseconds(0))) {
      dropped_ = 0;
    } else {
      ++dropped_;
    }
  }
  void flush_() override {}

 private:
  [[nodiscard]] std::string told() const {
    const auto count = std::to_string(dropped_);
    if (!logging_.level) return count + " lines were dropped, as nobody read stderr";
    if (logging_.format == LogFormat::logfmt) return "event=log_dropped lines=" + count;
    return R"("event":"log_dropped","lines":)" + count + "}";
  }

  Logging logging_;
  std::size_t dropped_ = 0;  ///< since the last line that was written
};

}  // namespace

void add_logging(CLI::App& app, Logging& logging) {
  static const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::debug},
                                                         {"info", LogLevel::info},
                                                         {"warning", LogLevel::warning},
                                                         {"error", LogLevel::error}};
  app.add_flag_callback(
      "-v,--verbose", [&logging] { logging.level = LogLevel::debug; },
      "Log all events on stderr: --log-level debug");
  app.add_option_function<std::string>(
         "--log-level", [&logging](const std::string& name) { logging.level = levels.at(name); },
         "Log events of this level and above: debug, info, warning, error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(levels));
  app.add_option_function<std::string>(
         "--log-format",
         [&logging](const std::string& name) {
           logging.format = name == "json" ? LogFormat::json : LogFormat::logfmt;
         },
         "How: logfmt (default) or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"logfmt", "json"}));
}

void start_logging(const Logging& logging) {
  auto logger =
      std::make_shared<spdlog::logger>("interlock", std::make_shared<DroppingSink>(logging));
  logger->set_pattern(pattern(logging));
  logger->set_level(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

std::shared_ptr<interlock::Observer> make_log(const Logging& logging) {
  if (!logging.level) return nullptr;
  return std::make_shared<interlock::Log>(
      [](LogLevel level, std::string_view line) {
        spdlog::log(to_spdlog(level), "{}", printable(std::string(without_brace(line))));
      },
      interlock::LogOptions{.level = *logging.level, .format = logging.format});
}

void log_warning(const Logging& logging, const std::string& event, const std::string& text) {
  if (!logging.level) return spdlog::warn("{}", printable(text));
  const auto quoted = printable_json(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (logging.format == LogFormat::logfmt) {
    spdlog::warn("event={} text={}", event, quoted);
  } else {
    spdlog::warn(R"("event":"{}","text":{}}})", event, quoted);
  }
}

}  // namespace cli
