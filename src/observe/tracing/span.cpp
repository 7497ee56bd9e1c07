#include "observe/tracing/span.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "interlock/version.hpp"

namespace interlock::observe {

namespace {

using nlohmann::json;

constexpr int kClient = 3;  // SpanKind: it asks somebody else, and waits
constexpr int kError = 2;   // StatusCode

// 64-bit numbers are strings in OTLP's JSON.
json attribute(const char* name, std::int64_t value) {
  return {{"key", name}, {"value", {{"intValue", std::to_string(value)}}}};
}
json attribute(const char* name, bool value) {
  return {{"key", name}, {"value", {{"boolValue", value}}}};
}
json attribute(const char* name, const std::string& value) {
  return {{"key", name}, {"value", {{"stringValue", value}}}};
}

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

std::string unix_nanoseconds(WallTime time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

json to_json(const Span& span) {
  json attributes = {attribute("lock.key", span.key),
                     attribute("lock.expiry_ms", milliseconds(span.expiry)),
                     attribute("lock.acquired", span.acquired),
                     attribute("lock.wait_time_ms", milliseconds(span.waited)),
                     attribute("lock.outcome", span.outcome),
                     attribute("lock.store", span.store)};
  if (span.timeout) {
    attributes.push_back(attribute("lock.timeout_ms", milliseconds(*span.timeout)));
  }
  json result = {{"traceId", span.trace_id},
                 {"spanId", span.span_id},
                 {"name", "DistributedLock.Acquire"},
                 {"kind", kClient},
                 {"startTimeUnixNano", unix_nanoseconds(span.start)},
                 {"endTimeUnixNano", unix_nanoseconds(span.end)},
                 {"attributes", std::move(attributes)}};
  if (!span.parent_id.empty()) result["parentSpanId"] = span.parent_id;
  for (const auto& queued : span.queued) {
    result["events"].push_back(
        {{"timeUnixNano", unix_nanoseconds(queued.at)},
         {"name", "lock.queued"},
         {"attributes",
          json::array({attribute("lock.ahead", static_cast<std::int64_t>(queued.ahead))})}});
  }
  if (!span.failure.empty()) result["status"] = {{"code", kError}, {"message", span.failure}};
  return result;
}

}  // namespace

std::string to_otlp(const std::vector<Span>& spans, const std::string& service) {
  json list = json::array();
  for (const auto& span : spans) list.push_back(to_json(span));
  const json scope = {{"scope", {{"name", "interlock"}, {"version", INTERLOCK_VERSION}}},
                      {"spans", std::move(list)}};
  const json resource = {
      {"attributes",
       json::array({attribute("service.name", service),
                    attribute("process.pid", static_cast<std::int64_t>(::getpid()))})}};
  const json message = {{"resourceSpans", json::array({{{"resource", resource},
                                                        {"scopeSpans", json::array({scope})}}})}};
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::uint64_t rejected_spans(const std::string& response) {
  const auto message = json::parse(response, nullptr, false);
  if (!message.is_object() || !message.contains("partialSuccess")) return 0;
  const auto& partial = message["partialSuccess"];
  if (!partial.is_object() || !partial.contains("rejectedSpans")) return 0;
  const auto& rejected = partial["rejectedSpans"];
  if (rejected.is_number_unsigned()) return rejected.get<std::uint64_t>();
  if (!rejected.is_string()) return 0;
  return std::strtoull(rejected.get<std::string>().c_str(), nullptr, 10);
}

}  // namespace interlock::observe
