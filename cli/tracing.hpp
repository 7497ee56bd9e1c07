// Traces of what a command does, if the environment says where to send them.
#pragma once

#include <memory>

#include "interlock/observer.hpp"
#include "logging.hpp"

namespace cli {

/// Whether the environment says where to send traces.
bool traces_wanted();
/// Null unless OTEL_EXPORTER_OTLP_ENDPOINT, or the one for traces, is set. The trace that TRACEPARENT
/// names is the parent. An endpoint that is none is told, and then there are no traces.
std::shared_ptr<interlock::Observer> make_tracing(const Logging& logging);

}  // namespace cli
