// Traces of acquisitions, sent to an OpenTelemetry collector by OTLP over HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "interlock/observer.hpp"

namespace interlock {

struct TracingOptions {
  /// Where the collector is; "/v1/traces" is added. Empty: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it
  /// is, else OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318.
  std::string endpoint{};
  /// Sent with each request, such as an API key. OTEL_EXPORTER_OTLP_HEADERS is added.
  std::map<std::string, std::string> headers{};
  /// Who we are: `service.name`. Empty: OTEL_SERVICE_NAME, else "unknown_service".
  std::string service{};
  /// What the span of an acquisition belongs to: its caller's W3C `traceparent`, or nothing. Called
  /// on the thread that asks for the lock, so whatever keeps the current trace for each thread can
  /// answer. A parent that is not sampled gets no span. Empty: each acquisition is its own trace.
  std::function<std::string()> parent{};
  /// Spans that wait to be sent; what comes when there are so many is dropped, and counted.
  std::size_t queue = 2048;
  /// How long a span waits for others to travel with.
  Duration interval = std::chrono::seconds(1);
  /// For one request.
  Duration timeout = std::chrono::seconds(10);
  /// How long the destructor tries to send what is left. (A request that hangs may cost it another
  /// second.)
  Duration linger = std::chrono::seconds(1);
  /// Told why spans can't be sent, once until some can, on the thread that sends them.
  std::function<void(const std::string& why)> on_failure{};
};

/// An observer for any number of clients. Each acquisition becomes a span
/// `DistributedLock.Acquire` from asking to its end, with
///
///     lock.key           the name, the first one that was asked for
///     lock.timeout_ms    how long it may wait; none if there is no limit
///     lock.expiry_ms     the TTL
///     lock.acquired      true or false
///     lock.wait_time_ms  how long that took
///     lock.outcome       granted, busy, timed_out, exhausted, cancelled, or why the store failed
///     lock.store         "redis", …
///
/// and an event `lock.queued` with `lock.ahead` for each place in line. A store that failed makes it
/// an error.
///
/// Spans are sent in batches by a thread of their own. Locks never wait for that: with a collector
/// that is slow or gone, spans are dropped. In a forked child it does nothing; make a new one. With
/// OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none it does nothing either.
class Tracing final : public Observer {
 public:
  /// Throws Error (invalid) if the endpoint is no http: or https: URL.
  explicit Tracing(const TracingOptions& options = {});
  ~Tracing() override;
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  void on(const Observation& observation) noexcept override;

  /// Waits until all spans that ended were sent or given up. False: not within that time.
  bool flush(Duration within);
  [[nodiscard]] std::uint64_t sent() const;
  /// Not sent: the queue was full, or the collector did not take them.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Why the last ones were not sent; empty if they were.
  [[nodiscard]] std::string last_error() const;

 private:
  class Pending;
  class Exporter;
  const std::uint64_t epoch_;
  const std::function<std::string()> parent_;
  std::unique_ptr<Pending> pending_;
  std::unique_ptr<Exporter> exporter_;  // none: switched off
};

}  // namespace interlock
