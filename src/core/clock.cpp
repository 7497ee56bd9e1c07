#include "interlock/clock.hpp"

#include <ctime>

#include <algorithm>
#include <utility>

namespace interlock {

TimePoint BootClock::now() noexcept {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return TimePoint(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

namespace {

// Condition variables sleep on CLOCK_MONOTONIC, which stands still while the machine is suspended.
// So nobody sleeps longer than this without looking at BootClock.
constexpr Duration kLongestSleep = std::chrono::seconds(1);

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return BootClock::now(); }

 private:
  [[nodiscard]] Duration longest_sleep(TimePoint until) const noexcept override {
    return std::min(until - now(), kLongestSleep);
  }
};

}  // namespace

std::shared_ptr<Clock> system_clock() {
  // Never destroyed: leases that end with the process still look at it.
  static const auto* const clock = new std::shared_ptr<Clock>(std::make_shared<SystemClock>());
  return *clock;
}

void Signal::set() {
  {
    const std::lock_guard lock(mutex_);
    set_ = true;
    if (alarm_ != nullptr) return alarm_->ring();
  }
  changed_.notify_one();
}

void Signal::nudge() {
  {
    const std::lock_guard lock(mutex_);
    nudged_ = true;
    if (alarm_ != nullptr) return alarm_->ring();
  }
  changed_.notify_one();
}

bool Signal::arm(Alarm& alarm) {
  clock_.enter(*this);
  {
    const std::lock_guard lock(mutex_);
    if (!set_) {
      alarm_ = &alarm;
      return true;
    }
  }
  clock_.leave(*this);
  return false;
}

void Signal::disarm() {
  {
    const std::lock_guard lock(mutex_);
    alarm_ = nullptr;
  }
  clock_.leave(*this);
}

bool Signal::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(set_, false);
}

Duration Signal::time_left(TimePoint until) const {
  if (clock_.now() >= until) return Duration::zero();
  return until == TimePoint::max() ? Duration::max() : clock_.longest_sleep(until);
}

void Signal::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  changed_.notify_one();
}

bool Signal::wait_until(TimePoint until) {
  {  // Most often the answer is already there.
    const std::lock_guard lock(mutex_);
    if (std::exchange(set_, false)) return true;
  }
  clock_.enter(*this);
  std::unique_lock lock(mutex_);
  while (!set_ && !interrupted_ && clock_.now() < until) {
    nudged_ = false;
    if (until == TimePoint::max()) {
      changed_.wait(lock, [this] { return set_ || nudged_ || interrupted_; });
    } else {
      const auto end = std::chrono::steady_clock::now() + clock_.longest_sleep(until);
      changed_.wait_until(lock, end, [this] { return set_ || nudged_ || interrupted_; });
    }
  }
  const bool was_set = std::exchange(set_, false);
  interrupted_ = false;
  lock.unlock();
  clock_.leave(*this);
  return was_set;
}

TimePoint ManualClock::now() const noexcept { return TimePoint(Duration(now_.load())); }

void ManualClock::advance(Duration by) {
  const std::lock_guard lock(mutex_);
  now_ += by.count();
  for (auto* sleeper : sleepers_) sleeper->nudge();
}

Duration ManualClock::longest_sleep(TimePoint) const noexcept { return std::chrono::hours(1); }

void ManualClock::enter(Signal& signal) {
  const std::lock_guard lock(mutex_);
  sleepers_.insert(&signal);
}

void ManualClock::leave(Signal& signal) {
  const std::lock_guard lock(mutex_);
  sleepers_.erase(sleepers_.find(&signal));
}

}  // namespace interlock
