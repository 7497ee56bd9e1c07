#include "observe/tracing/traceparent.hpp"

#include <algorithm>

namespace interlock::observe {

namespace {

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  constexpr std::size_t kLength = 55;
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const auto version = text.substr(0, 2);
  const auto flags = text.substr(53, 2);
  if (!is_hex(version) || version == "ff" || !is_hex(flags)) return {};
  // Later versions may say more, after another dash.
  if (text.size() > kLength && (version == "00" || text[kLength] != '-')) return {};
  const auto trace = text.substr(3, 32);
  const auto span = text.substr(36, 16);
  if (!is_id(trace) || !is_id(span)) return {};
  const auto low = flags[1];
  const int digit = low <= '9' ? low - '0' : low - 'a' + 10;
  return TraceParent{std::string(trace), std::string(span), digit % 2 == 1};
}

}  // namespace interlock::observe
