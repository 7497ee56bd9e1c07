// One log line: keys and values, as logfmt or as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interlock/log.hpp"

namespace interlock::observe {

class Record {
 public:
  explicit Record(LogFormat format) : json_(format == LogFormat::json) {}

  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, std::int64_t value);
  [[nodiscard]] std::string finish() &&;

 private:
  void begin(std::string_view key);

  const bool json_;
  std::string line_;
};

}  // namespace interlock::observe
