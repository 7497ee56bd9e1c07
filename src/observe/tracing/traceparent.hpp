// The W3C header that says which trace a piece of work belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace interlock::observe {

struct TraceParent {
  std::string trace_id;  ///< 32 hexadecimal digits
  std::string span_id;   ///< 16
  bool sampled = false;
};

/// `00-<trace id>-<span id>-<flags>`. Nothing, if it is anything else: then there is no parent.
std::optional<TraceParent> parse_traceparent(std::string_view text);

}  // namespace interlock::observe
