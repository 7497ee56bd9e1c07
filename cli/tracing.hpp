// Traces of what a command does, if the environment says where to send them.
#pragma once

#include <memory>

#include "interlock/observer.hpp"

namespace cli {

/// Null unless OTEL_EXPORTER_OTLP_ENDPOINT, or the one for traces, is set. The trace that TRACEPARENT
/// names is the parent.
std::shared_ptr<interlock::Observer> make_tracing();

}  // namespace cli
