#include "recipes/cached.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace interlock::flights {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kStamp = "interlock:1 ";

// A number and what ends it, taken off the front.
std::optional<milliseconds> take(std::string_view& text, char end) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(rest - text.data());
  // Fifteen digits last for 30,000 years, and leave room to calculate.
  if (error != std::errc{} || number < 0 || length > 15) return std::nullopt;
  if (length == text.size() || *rest != end) return std::nullopt;
  text.remove_prefix(length + 1);
  return milliseconds(number);
}

}  // namespace

Cached::Cached(std::string bytes) : bytes_(std::move(bytes)) {
  std::string_view text = bytes_;
  if (!text.starts_with(kStamp)) return;
  text.remove_prefix(kStamp.size());
  const auto made = take(text, ' ');
  const auto took = take(text, '\n');
  if (!made || !took) return;
  made_ = made;
  took_ = *took;
  value_at_ = bytes_.size() - text.size();
}

milliseconds Freshness::now() const {
  const auto time = options_.now ? options_.now() : std::chrono::system_clock::now();
  return std::chrono::floor<milliseconds>(time.time_since_epoch());
}

std::string Freshness::seal(const std::string& value, Duration took) const {
  if (!options_.fresh_for && !value.starts_with(kStamp)) return value;
  return std::string(kStamp) + std::to_string(now().count()) + ' ' +
         std::to_string(std::chrono::ceil<milliseconds>(took).count()) + '\n' + value;
}

milliseconds Freshness::age(const Cached& cached) const {
  if (!cached.made()) return std::chrono::floor<milliseconds>(*options_.fresh_for);
  // Made in the future: one of the two clocks is wrong by that much, so it counts as that old.
  return std::chrono::abs(now() - *cached.made());
}

bool Freshness::usable(const Cached& cached) const {
  if (!options_.fresh_for) return true;
  const auto past = age(cached) - std::chrono::floor<milliseconds>(*options_.fresh_for);
  return past < milliseconds(0) || past < std::chrono::floor<milliseconds>(options_.stale_for);
}

bool Freshness::due(const Cached& cached, double luck) const {
  if (!options_.fresh_for) return false;
  const auto left = std::chrono::floor<milliseconds>(*options_.fresh_for) - age(cached);
  if (left <= milliseconds(0)) return true;
  const auto took = static_cast<double>(cached.took().count());
  return -std::log(luck) * options_.early * took >= static_cast<double>(left.count());
}

}  // namespace interlock::flights
