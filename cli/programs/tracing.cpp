#include "tracing.hpp"

#include <cstdlib>
#include <string>

#include "command.hpp"
#include "terminal.hpp"

#ifdef INTERLOCK_TRACING
#include "interlock/tracing.hpp"
#endif

namespace cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const char* endpoint_variable() {
  const char* variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  return environment(variable).empty() ? "OTEL_EXPORTER_OTLP_ENDPOINT" : variable;
}

}  // namespace

bool traces_wanted() { return !environment(endpoint_variable()).empty(); }

#ifdef INTERLOCK_TRACING

namespace {

// What is no URL may still hold a secret.
std::string without_secrets(const std::string& value) {
  return value.find_first_of("@?=") == std::string::npos ? "'" + printable(value, 80) + "'" : "it";
}

void warn(const Logging& logging, const std::string& text) {
  if (logging.level) return log_warning(logging, "no_traces", text);
  complain("warning: " + text);
}

}  // namespace

std::shared_ptr<interlock::Observer> make_tracing(const Logging& logging) {
  if (!traces_wanted()) return nullptr;
  const char* variable = endpoint_variable();
  interlock::TracingOptions options;
  if (environment("OTEL_SERVICE_NAME").empty()) options.service = "interlock";
  options.parent = [parent = environment("TRACEPARENT")] { return parent; };
  if (logging.level) {
    options.on_failure = [logging](const std::string& why) {
      log_warning(logging, "traces_failed", "traces can't be sent: " + why);
    };
  }
  try {
    return std::make_shared<interlock::Tracing>(options);
  } catch (const interlock::Error& error) {
    warn(logging, std::string(variable) + ": " + without_secrets(environment(variable)) +
                      " is nowhere to send traces to, so none are sent: " + error.message());
    return nullptr;
  }
}

#else

std::shared_ptr<interlock::Observer> make_tracing(const Logging& /*logging*/) { return nullptr; }

#endif

}  // namespace cli
