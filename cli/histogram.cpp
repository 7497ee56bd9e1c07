#include "histogram.hpp"

#include <langinfo.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "interlock/duration.hpp"

namespace cli {

namespace {

using interlock::Duration;

double microseconds(Duration duration) {
  return std::round(static_cast<double>(duration.count()) / 10) / 100;
}

std::string three_digits(Duration value) {
  const auto number = static_cast<double>(value.count());
  std::array<char, 32> text{};
  const auto put = [&](double scaled, const char* unit) {
    (void)std::snprintf(text.data(), text.size(), "%.*f%s",
                        scaled < 9.995   ? 2
                        : scaled < 99.95 ? 1
                                         : 0,
                        scaled, unit);
  };
  if (number < 999.5) {
    (void)std::snprintf(text.data(), text.size(), "%.0fns", number);
  } else if (number < 999.5e3) {
    put(number / 1e3, "us");
  } else if (number < 999.5e6) {
    put(number / 1e6, "ms");
  } else {
    put(number / 1e9, "s");
  }
  return text.data();
}

}  // namespace

std::size_t Histogram::bucket(std::uint64_t value) {
  if (value < kFine) return value;
  const auto power = static_cast<std::size_t>(std::bit_width(value)) - 6;
  return std::min((power + 1) * kFine + (value >> power) - kFine, kFine * kPowers - 1);
}

std::uint64_t Histogram::largest_in(std::size_t bucket) {
  if (bucket < kFine) return bucket;
  const auto power = bucket / kFine - 1;
  return ((bucket % kFine + kFine + 1) << power) - 1;
}

void Histogram::add(Duration value) {
  const auto nanoseconds = std::max<std::int64_t>(value.count(), 0);
  ++count_;
  total_ += nanoseconds;
  max_ = std::max(max_, nanoseconds);
  ++buckets_[bucket(static_cast<std::uint64_t>(nanoseconds))];
}

void Histogram::merge(const Histogram& other) {
  count_ += other.count_;
  total_ += other.total_;
  max_ = std::max(max_, other.max_);
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
}

Duration Histogram::mean() const {
  return Duration(count_ == 0 ? 0 : total_ / static_cast<std::int64_t>(count_));
}

Duration Histogram::percentile(double of_hundred) const {
  const auto wanted = std::ceil(static_cast<double>(count_) * of_hundred / 100);
  double seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen > 0) {
      return std::min(max(), Duration(static_cast<std::int64_t>(largest_in(i))));
    }
  }
  return max();
}

std::vector<std::string> Histogram::picture() const {
  constexpr double kColumns = 40;
  if (count_ == 0) return {};
  std::array<double, kPowers> powers{};
  for (std::size_t i = 0; i < buckets_.size(); ++i) powers[i / kFine] += buckets_[i];
  const auto* const most = std::max_element(powers.begin(), powers.end());
  const bool utf8 = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
  std::vector<std::string> lines;
  // What is too rare for lines of its own goes with its neighbours: nobody needs thirty of them.
  const auto all = static_cast<double>(count_);
  double pending = 0;
  double seen = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] == 0) continue;
    pending += powers[i];
    seen += powers[i];
    const bool last = seen == all;
    if (!last && (seen < all / 500 || (seen - pending > all * 0.995))) continue;
    const auto limit =
        std::min(max(), Duration(static_cast<std::int64_t>(largest_in(i * kFine + kFine - 1))));
    std::array<char, 64> text{};
    (void)std::snprintf(text.data(), text.size(), "  up to %7s %6.2f%%  ",
                        three_digits(limit).c_str(), 100 * pending / all);
    std::string line = text.data();
    const auto marks = static_cast<int>(std::lround(kColumns * pending / *most));
    for (int mark = 0; mark < marks; ++mark) line += utf8 ? "█" : "#";
    if (marks == 0) line += utf8 ? "▏" : ".";
    lines.push_back(std::move(line));
    pending = 0;
  }
  return lines;
}

std::string cell(const Histogram& histogram, Duration value) {
  return histogram.count() == 0 ? "-" : three_digits(value);
}

std::vector<std::string> cells(const Histogram& histogram) {
  std::vector<std::string> texts{std::to_string(histogram.count()),
                                 cell(histogram, histogram.mean())};
  for (const double each : {50.0, 90.0, 99.0}) {
    texts.push_back(cell(histogram, histogram.percentile(each)));
  }
  texts.push_back(cell(histogram, histogram.max()));
  return texts;
}

std::vector<std::string> cell_titles() { return {"COUNT", "MEAN", "P50", "P90", "P99", "MAX"}; }

nlohmann::ordered_json to_json(const Histogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  return {{"count", histogram.count()},
          {"mean_us", microseconds(histogram.mean())},
          {"p50_us", microseconds(histogram.percentile(50))},
          {"p90_us", microseconds(histogram.percentile(90))},
          {"p95_us", microseconds(histogram.percentile(95))},
          {"p99_us", microseconds(histogram.percentile(99))},
          {"max_us", microseconds(histogram.max())}};
}

std::string for_people(double number) {
  std::array<char, 32> text{};
  if (number < 1e4) {
    (void)std::snprintf(text.data(), text.size(), number < 10 ? "%.1f" : "%.0f", number);
  } else {
    (void)std::snprintf(text.data(), text.size(), "%.1fk", number / 1e3);
  }
  return text.data();
}

}  // namespace cli
