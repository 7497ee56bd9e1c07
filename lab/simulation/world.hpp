// Virtual time: what happens when. One run is one thread, and time is a number that moves from event to event.
#pragma once

#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "interlock/clock.hpp"
#include "random.hpp"

namespace simulation {

using interlock::Duration;
using interlock::TimePoint;
using namespace std::chrono_literals;

/// Since the run began, by a clock that nobody in the run can see.
using Time = std::chrono::nanoseconds;

/// A clock of a client or a node: it runs at its own rate, from its own beginning.
class OwnClock {
 public:
  OwnClock() = default;
  /// `rate`: of a million, so much faster.
  OwnClock(Duration begins, std::int64_t rate) : begins_(begins), rate_(rate) {}

  void set(Duration by) { begins_ += by; }
  [[nodiscard]] Duration at(Time time) const { return begins_ + time + time / 1'000'000 * rate_; }
  /// When it shows this, or a little later.
  [[nodiscard]] Time when(Duration shows) const {
    auto guess = shows - begins_;
    guess -= guess / (1'000'000 + rate_) * rate_;
    while (at(guess) < shows) guess += shows - at(guess);
    return guess;
  }

 private:
  Duration begins_{};
  std::int64_t rate_ = 0;
};

class World {
 public:
  explicit World(std::uint64_t seed, bool traces) : random(seed, 1), traces_(traces) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Time now() const noexcept { return now_; }
  void at(Time when, std::function<void()> what) {
    events_.push({std::max(when, now_), ++last_, std::move(what)});
  }
  void in(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  void run_until(Time end);
  [[nodiscard]] std::uint64_t events() const noexcept { return last_; }

  /// `say` gives a line; it is not called if nobody reads them.
  template <class Say>
  void trace(Say say) {
    if (traces_) lines_.push_back(stamp() + say());
  }
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

  /// Notes that something must not be so. Only the first one counts, and ends the run.
  void violate(std::string check, std::string what);
  [[nodiscard]] const std::string& check() const noexcept { return check_; }
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

  Random random;

 private:
  struct Event {
    Time when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };
  [[nodiscard]] std::string stamp() const;

  Time now_{};
  std::uint64_t last_ = 0;
  std::priority_queue<Event> events_;
  bool traces_;
  std::vector<std::string> lines_;
  std::string check_, what_;
};

}  // namespace simulation
