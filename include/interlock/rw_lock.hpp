// Many readers or one writer.
#pragma once

#include "interlock/acquirer.hpp"
#include "interlock/std_lock.hpp"

namespace interlock {

/// Fair to both: everybody queues, a waiting writer holds back later readers, and readers that came
/// before a writer go before it. Each read lease is a holder of its own and ends on its own.
///
/// `reader()` and `writer()` have every form of acquiring (bounded, asynchronous, …); read(),
/// write() and so on are short for the usual ones. Lease::downgrade() and Lease::try_upgrade() turn
/// one into the other. lock_shared() and the like are for std::shared_lock and std::unique_lock,
/// see Mutex.
class RwLock {
 public:
  RwLock(const Client& client, const std::string& name, const Options& options = {})
      : reader_(client, {Part{.resource = name, .mode = Mode::shared}}, options),
        writer_(client, {Part{.resource = name, .mode = Mode::exclusive}}, options) {}

  [[nodiscard]] const Acquirer& reader() const noexcept { return reader_; }
  [[nodiscard]] const Acquirer& writer() const noexcept { return writer_; }

  Lease read(std::stop_token stop = {}) const { return reader_.acquire(std::move(stop)); }
  Attempt try_read() const { return reader_.try_acquire(); }
  Attempt try_read_for(Duration limit, std::stop_token stop = {}) const {
    return reader_.try_acquire_for(limit, std::move(stop));
  }
  Lease write(std::stop_token stop = {}) const { return writer_.acquire(std::move(stop)); }
  Attempt try_write() const { return writer_.try_acquire(); }
  Attempt try_write_for(Duration limit, std::stop_token stop = {}) const {
    return writer_.try_acquire_for(limit, std::move(stop));
  }

  void lock() { written_.put(write()); }
  bool try_lock() { return written_.put(try_write()); }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return written_.put(try_write_for(std::chrono::ceil<Duration>(limit)));
  }
  template <class StdClock, class StdDuration>
  bool try_lock_until(std::chrono::time_point<StdClock, StdDuration> until) {
    return try_lock_for(until - StdClock::now());
  }
  void unlock() { written_.drop(); }

  void lock_shared() { read_.put(read()); }
  bool try_lock_shared() { return read_.put(try_read()); }
  template <class Rep, class Period>
  bool try_lock_shared_for(std::chrono::duration<Rep, Period> limit) {
    return read_.put(try_read_for(std::chrono::ceil<Duration>(limit)));
  }
  template <class StdClock, class StdDuration>
  bool try_lock_shared_until(std::chrono::time_point<StdClock, StdDuration> until) {
    return try_lock_shared_for(until - StdClock::now());
  }
  void unlock_shared() { read_.drop(); }

 private:
  Acquirer reader_;
  Acquirer writer_;
  detail::ThreadLeases read_;
  detail::ThreadLeases written_;
};

}  // namespace interlock
