#include "interlock/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/text.hpp"
#include "interlock/error.hpp"
#include "interlock/options.hpp"
#include "interlock/traits.hpp"

namespace interlock {

namespace {

struct Unit {
  std::string_view name;
  Duration size;
};

constexpr std::array<Unit, 6> kUnits{{{"h", std::chrono::hours(1)},
                                      {"m", std::chrono::minutes(1)},
                                      {"s", std::chrono::seconds(1)},
                                      {"ms", std::chrono::milliseconds(1)},
                                      {"us", std::chrono::microseconds(1)},
                                      {"ns", std::chrono::nanoseconds(1)}}};

[[noreturn]] void refuse(std::string_view text) {
  throw Error(
      Errc::invalid,
      "'" + printable(text, 40) +
          "' is not a duration; write a number with its unit, like 10s, 1m30s, 250ms or 2h");
}

}  // namespace

Duration parse_duration(std::string_view text) {
  std::string_view rest = text;
  Duration sum{};
  std::size_t next_unit = 0;  // units go from large to small, each once
  if (rest.empty()) refuse(text);
  while (!rest.empty()) {
    double number = 0;
    if (rest[0] < '0' || rest[0] > '9') refuse(text);
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc{}) refuse(text);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto length = std::min(rest.find_first_of("0123456789."), rest.size());
    const auto name = rest.substr(0, length);
    std::size_t unit = next_unit;
    while (unit < kUnits.size() && kUnits[unit].name != name) ++unit;
    if (unit == kUnits.size()) refuse(text);
    next_unit = unit + 1;
    const double nanoseconds = number * static_cast<double>(kUnits[unit].size.count());
    if (nanoseconds > 9e18 - static_cast<double>(sum.count())) refuse(text);
    sum += Duration(static_cast<Duration::rep>(std::llround(nanoseconds)));
    rest.remove_prefix(length);
  }
  return sum;
}

std::string format_duration(Duration value) {
  if (value < Duration::zero())
    return std::string("-").append(format_duration(-std::max(value, -Duration::max())));
  using namespace std::chrono;
  const auto number = [](double n, const char* unit) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.begin(), text.end(), n, std::chars_format::general, 3).ptr;
    return std::string(text.begin(), end) + unit;
  };
  const auto count = static_cast<double>(value.count());
  if (value == Duration::zero()) return "0s";
  if (value < microseconds(1)) return number(count, "ns");
  if (value < milliseconds(1)) {
    const auto text = number(count / 1e3, "us");
    return text == "1e+03us" ? "1ms" : text;
  }
  if (value < milliseconds(1000)) {
    const auto text = number(count / 1e6, "ms");
    return text == "1e+03ms" ? "1s" : text;
  }
  if (value < seconds(60)) {
    const auto text = number(count / 1e9, "s");
    return text == "60s" ? "1m" : text;
  }
  const auto total = value / seconds(1) + (value % seconds(1) >= milliseconds(500) ? 1 : 0);
  const auto h = total / 3600;
  const auto m = total / 60 % 60;
  const auto s = total % 60;
  std::string text;
  if (h > 0) text += std::to_string(h) + "h";
  if (m > 0) text += std::to_string(m) + "m";
  if (s > 0) text += std::to_string(s) + "s";
  return text;
}

Duration Retry::delay(int failed_tries) const noexcept {
  if (first <= Duration::zero()) return Duration::zero();
  const double factor = std::pow(multiplier, std::max(0, failed_tries - 1));
  const double delay = static_cast<double>(first.count()) * factor;
  // Also if it is no number at all.
  if (!(delay < static_cast<double>(max.count()))) return max;
  return Duration(static_cast<Duration::rep>(delay));
}

Duration Traits::drift(Duration ttl) const noexcept {
  const auto part =
      Duration(static_cast<Duration::rep>(static_cast<double>(ttl.count()) * drift_rate));
  return std::min(drift_fixed + part, ttl / 5);
}

}  // namespace interlock
