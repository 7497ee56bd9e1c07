// One acquisition as a span, and spans as OTLP's JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interlock/clock.hpp"

namespace interlock::observe {

using WallTime = std::chrono::system_clock::time_point;

struct Span {
  std::string trace_id{};  ///< 32 hexadecimal digits
  std::string span_id{};   ///< 16
  std::string parent_id{};
  WallTime start{};
  WallTime end{};

  std::string key{};
  std::string store{};
  std::optional<Duration> timeout{};
  Duration expiry{};
  bool acquired = false;
  Duration waited{};
  std::string outcome{};
  std::string failure{};  ///< the store's; empty: none

  struct Queued {
    WallTime at;
    std::uint32_t ahead;
  };
  std::vector<Queued> queued{};
};

/// The body of a POST to /v1/traces.
std::string to_otlp(const std::vector<Span>& spans, const std::string& service);

/// How many spans the collector says that it left out, though it took the others.
std::uint64_t rejected_spans(const std::string& response);

}  // namespace interlock::observe
