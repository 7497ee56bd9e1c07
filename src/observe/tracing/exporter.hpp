// Sends spans in batches, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/secrets.hpp"
#include "interlock/tracing.hpp"
#include "observe/tracing/http_post.hpp"
#include "observe/tracing/span.hpp"

namespace interlock {

class Tracing::Exporter {
 public:
  /// Throws Error (invalid) for an endpoint that is none.
  explicit Exporter(const TracingOptions& options);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  /// Tries once more to send what is left, for `linger` at most.
  ~Exporter();

  /// Never waits for the network.
  void add(observe::Span span);
  bool flush(Duration within);

  [[nodiscard]] std::uint64_t sent() const;
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] std::string last_error() const;
  /// A span was not even made.
  void drop();

 private:
  using Steady = std::chrono::steady_clock;

  void run();
  /// Whether to try again, later.
  bool send(const std::vector<observe::Span>& batch);
  void finish(std::uint64_t taken, std::uint64_t dropped, const std::string& error);
  [[nodiscard]] bool overdue() const;

  const std::string service_;
  const std::size_t most_;
  const Duration interval_;
  const Duration timeout_;
  const Duration linger_;
  const std::function<void(const std::string&)> on_failure_;
  const std::string shown_;  ///< the address, without secrets
  const std::map<std::string, std::string> headers_;
  const core::Secrets secrets_;
  observe::HttpPost http_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<observe::Span> queue_;
  std::size_t under_way_ = 0;
  bool hurry_ = false;
  bool stop_ = false;
  Steady::time_point stop_by_ = Steady::time_point::max();
  std::uint64_t sent_ = 0;
  std::uint64_t dropped_ = 0;
  std::string last_error_;
  std::thread thread_;
};

}  // namespace interlock
