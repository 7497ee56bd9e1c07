// Time as Interlock counts it, and a clock that tests can move by hand.
//
// All durations of a lease are counted on the host's steady clock *including* the time the machine
// was suspended (CLOCK_BOOTTIME): a laptop that slept through its lease must know it when it wakes.
// Wall clocks decide nothing; they only appear where a person reads a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

namespace interlock {

using Duration = std::chrono::nanoseconds;

/// Monotonic, and it goes on while the machine is suspended. Comparable between processes of one
/// host until it reboots.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

using TimePoint = BootClock::time_point;

/// `from + by`; for a duration without an end, such as Duration::max(), the end of time.
constexpr TimePoint later(TimePoint from, Duration by) noexcept {
  return by > Duration::zero() && from > TimePoint::max() - by ? TimePoint::max() : from + by;
}

class Clock;

/// One event that a thread can sleep on. `set` wakes the sleeper, or the next one to come: a set
/// that came first is not missed. Any thread may set; one thread waits at a time.
class Signal {
 public:
  /// The clock must outlive the signal.
  explicit Signal(Clock& clock) : clock_(clock) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void set();

  /// Sleeps until the signal is set (and clears it: true), or the clock reaches `until` or the
  /// sleeper is interrupted (false).
  bool wait_until(TimePoint until);

  /// Makes a sleeper look at the clock again. For clocks that jump.
  void nudge();

  // For a backend that sleeps on something of its own (a socket) on behalf of the one who waits:

  /// Told, instead of a sleeper, that the signal was set or nudged. Must not call back.
  class Alarm {
   public:
    virtual ~Alarm() = default;
    virtual void ring() noexcept = 0;
  };
  /// From now on the alarm rings. False: the signal is set already, and no alarm is needed.
  bool arm(Alarm& alarm);
  /// After this the alarm is not touched any more.
  void disarm();
  /// True if it was set, and clears it.
  bool take();
  /// How long one may sleep before the clock has to be looked at again; nothing if it is time.
  [[nodiscard]] Duration time_left(TimePoint until) const;
  /// Makes wait_until return before its time, now or when it is called next.
  void interrupt();

 private:
  Clock& clock_;
  Alarm* alarm_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
  bool nudged_ = false;
  bool interrupted_ = false;
};

/// Where a client gets its time. Thread-safe. Use `system_clock()` unless you test.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

 private:
  friend class Signal;
  /// How long a sleeper may sleep before it has to look at the clock again.
  [[nodiscard]] virtual Duration longest_sleep(TimePoint until) const noexcept = 0;
  /// A sleeper comes and goes: a clock that jumps nudges those who sleep.
  virtual void enter(Signal&) {}
  virtual void leave(Signal&) {}
};

/// The real clock, shared by the whole process.
std::shared_ptr<Clock> system_clock();

/// A clock that stands still until it is told to move, for tests: yours, too.
///
///     auto clock = std::make_shared<interlock::ManualClock>();
///     auto locks = interlock::Client(interlock::memory_store(clock), {.clock = clock});
///     ...
///     clock->advance(31s);   // the lease nobody renewed is over
///
/// Whoever sleeps on it is woken when its time has come. Thread-safe.
class ManualClock final : public Clock {
 public:
  ManualClock() = default;
  [[nodiscard]] TimePoint now() const noexcept override;
  void advance(Duration by);

 private:
  [[nodiscard]] Duration longest_sleep(TimePoint until) const noexcept override;
  void enter(Signal& signal) override;
  void leave(Signal& signal) override;

  // Atomic, since a sleeper reads it under its signal's mutex and `advance` takes the two mutexes
  // in the other order.
  std::atomic<Duration::rep> now_{Duration(std::chrono::hours(1)).count()};
  std::mutex mutex_;
  std::multiset<Signal*> sleepers_;
};

}  // namespace interlock
