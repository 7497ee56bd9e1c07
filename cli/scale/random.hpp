// Where the model's chances come from, and how what it saw is counted.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace cli::scale {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// From 0 up to, but without, 1.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double exponential() { return -std::log1p(-uniform()); }
  int below(int limit) { return static_cast<int>(uniform() * limit); }

 private:
  std::mt19937_64 engine_;
};

/// Which of many: the first ones more often, by Zipf's law.
class Zipf {
 public:
  Zipf(int count, double skew) : count_(count) {
    if (skew <= 0) return;
    sums_.reserve(static_cast<std::size_t>(count));
    double sum = 0;
    for (int i = 1; i <= count; ++i) sums_.push_back(sum += std::pow(i, -skew));
  }
  int pick(Random& random) const {
    if (sums_.empty()) return random.below(count_);
    const auto found =
        std::upper_bound(sums_.begin(), sums_.end(), random.uniform() * sums_.back());
    return std::min(static_cast<int>(found - sums_.begin()), count_ - 1);
  }

 private:
  int count_;
  std::vector<double> sums_{};
};

/// How often what took how long, to one part in fifty.
class Histogram {
 public:
  void add(std::chrono::nanoseconds time) {
    const auto value = std::max<double>(1, static_cast<double>(time.count()));
    const auto at = static_cast<std::size_t>(std::log(value) / kStep);
    if (at >= counts_.size()) counts_.resize(at + 1);
    ++counts_[at];
    ++count_;
    sum_ += value;
    most_ = std::max(most_, time);
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::chrono::nanoseconds most() const { return most_; }
  [[nodiscard]] std::chrono::nanoseconds mean() const {
    return in_ns(count_ == 0 ? 0 : sum_ / static_cast<double>(count_));
  }
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const {
    auto left = part * static_cast<double>(count_);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      left -= static_cast<double>(counts_[i]);
      if (left <= 0 && counts_[i] > 0)
        return std::min(most_, in_ns(std::exp((static_cast<double>(i) + 0.5) * kStep)));
    }
    return most_;
  }

 private:
  static std::chrono::nanoseconds in_ns(double value) {
    return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(value));
  }

  static constexpr double kStep = 0.02;
  std::vector<std::uint64_t> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::chrono::nanoseconds most_{};
};

}  // namespace cli::scale
