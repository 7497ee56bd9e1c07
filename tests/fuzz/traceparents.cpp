// The W3C header traceparent, from whoever has called the program that takes a lock.
#include "fuzz.hpp"
#include "observe/tracing/traceparent.hpp"

void fuzz::run(std::string_view input) {
  const auto parent = interlock::observe::parse_traceparent(input);
  if (!parent) return;
  require(parent->trace_id.size() == 32 && parent->span_id.size() == 16, "ids have their length");
  const auto text =
      "00-" + parent->trace_id + "-" + parent->span_id + (parent->sampled ? "-01" : "-00");
  const auto again = interlock::observe::parse_traceparent(text);
  require(again && again->trace_id == parent->trace_id && again->span_id == parent->span_id &&
              again->sampled == parent->sampled,
          "what is passed on says the same");
}
