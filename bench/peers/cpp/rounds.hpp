// What one worker does and remembers: it asks, has the lock, gives it back.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "peer.hpp"

namespace peers {

/// Microseconds since 1970, which all processes of a machine agree on.
std::int64_t now_us();

/// Who is inside, for all workers of a process that share a lock.
struct Inside {
  std::atomic<int> readers = 0;
  std::atomic<int> writers = 0;
};

class Rounds {
 public:
  Rounds(const Work& work, int worker, int batch, Inside& inside);

  /// Whether there is another round; its time begins.
  bool next();
  /// Whether this round asks for it shared.
  [[nodiscard]] bool shared() const noexcept { return shared_; }
  /// The lock is there: looks whether anybody else has it.
  void enter(std::uint64_t fence);
  /// Before the lock is given back.
  void leave();
  /// The lock was given back.
  void done();

  [[nodiscard]] std::int64_t cycles() const noexcept { return cycles_; }
  [[nodiscard]] std::int64_t overlaps() const noexcept { return overlaps_; }
  [[nodiscard]] const auto& records() const noexcept { return records_; }
  [[nodiscard]] const std::vector<double>& cycle_us() const noexcept { return cycle_us_; }

 private:
  using Clock = std::chrono::steady_clock;

  const Work* work_;
  Inside* inside_;
  std::string register_;
  int batch_;
  Clock::time_point end_;
  Clock::time_point begun_;
  std::minstd_rand random_;
  bool shared_ = false;
  bool made_register_ = false;
  std::int64_t cycles_ = 0;
  std::int64_t overlaps_ = 0;
  std::array<std::int64_t, 4> record_{};  ///< asked, from, to, fence
  std::vector<std::array<std::int64_t, 4>> records_;
  std::vector<double> cycle_us_;
};

}  // namespace peers
