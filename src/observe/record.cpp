#include "observe/record.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace interlock::observe {

namespace {

constexpr std::size_t kLongest = 4096;

// A bare word is one that nobody could read as something else.
bool is_word(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return c == ' ' || c == '"' || c == '=' || c == '\\';
  });
}

}  // namespace

void Record::begin(std::string_view key) {
  if (json_) {
    line_.append(line_.empty() ? "{\"" : ",\"").append(key).append("\":");
  } else {
    line_.append(line_.empty() ? "" : " ").append(key).append("=");
  }
}

void Record::add(std::string_view key, std::string_view value) {
  begin(key);
  // Without control characters, both formats quote the same way.
  const auto safe = printable(value, is_plain_utf8(value) ? std::string::npos : kLongest);
  if (!json_ && is_word(safe)) {
    line_ += safe;
    return;
  }
  line_ += '"';
  for (const char c : safe) {
    if (c == '"' || c == '\\') line_ += '\\';
    line_ += c;
  }
  line_ += '"';
}

void Record::add(std::string_view key, std::int64_t value) {
  begin(key);
  line_ += std::to_string(value);
}

std::string Record::finish() && {
  if (json_) line_ += '}';
  return std::move(line_);
}

}  // namespace interlock::observe
