// Durations, counted: any number of them in a few kilobytes.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "interlock/clock.hpp"

namespace cli {

/// Buckets that grow by about 3 %. Plain data that begins as zeros, so it may lie in memory that
/// processes share. One thread adds; whoever reads meanwhile may miss the last ones.
class Histogram {
 public:
  void add(interlock::Duration value);
  void merge(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] interlock::Duration total() const { return interlock::Duration(total_); }
  [[nodiscard]] interlock::Duration mean() const;
  [[nodiscard]] interlock::Duration max() const { return interlock::Duration(max_); }
  /// So many of a hundred are not larger than this.
  [[nodiscard]] interlock::Duration percentile(double of_hundred) const;

  /// A small picture, a line for each power of two.
  [[nodiscard]] std::vector<std::string> picture() const;

 private:
  static constexpr std::size_t kFine = 32;  // buckets for each power of two
  static constexpr std::size_t kPowers = 42;
  static std::size_t bucket(std::uint64_t value);
  static std::uint64_t largest_in(std::size_t bucket);

  std::uint64_t count_ = 0;
  std::int64_t total_ = 0;
  std::int64_t max_ = 0;
  std::array<std::uint32_t, kFine * kPowers> buckets_{};
};

/// "12.3us" and the like; "-" if there is nothing to tell.
std::string cell(const Histogram& histogram, interlock::Duration value);
/// The cells of a table: count, mean, p50, p90, p99, max.
std::vector<std::string> cells(const Histogram& histogram);
/// Their titles.
std::vector<std::string> cell_titles();
/// {"count": …, "mean_us": …, "p50_us": …, …}
nlohmann::ordered_json to_json(const Histogram& histogram);

/// "1234", "12.3k".
std::string for_people(double number);

}  // namespace cli
