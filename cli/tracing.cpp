#include "tracing.hpp"

#include <cstdlib>
#include <string>

#ifdef INTERLOCK_TRACING
#include "interlock/tracing.hpp"
#endif

namespace cli {

#ifdef INTERLOCK_TRACING

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::shared_ptr<interlock::Observer> make_tracing() {
  if (environment("OTEL_EXPORTER_OTLP_ENDPOINT").empty() &&
      environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").empty()) {
    return nullptr;
  }
  interlock::TracingOptions options;
  if (environment("OTEL_SERVICE_NAME").empty()) options.service = "interlock";
  options.parent = [parent = environment("TRACEPARENT")] { return parent; };
  return std::make_shared<interlock::Tracing>(std::move(options));
}

#else

std::shared_ptr<interlock::Observer> make_tracing() { return nullptr; }

#endif

}  // namespace cli
