// One holder at a time, across threads, processes and machines.
#pragma once

#include "interlock/acquirer.hpp"
#include "interlock/std_lock.hpp"

namespace interlock {

/// See Acquirer for acquire(), try_acquire(), try_acquire_for(), async_acquire() and the rest: they
/// give a Lease, which is the better way, since a lease can tell that it was lost.
///
/// lock(), try_lock(), try_lock_for() and unlock() are there for std::scoped_lock and
/// std::unique_lock: the lease is then kept here for the calling thread, and unlock() has to come
/// from the same thread. Not recursive.
class Mutex : public Acquirer {
 public:
  Mutex(Client client, std::string name, Options options = {})
      : Acquirer(std::move(client), {Part{.resource = std::move(name)}}, std::move(options)) {}

  void lock() { held_.put(acquire()); }
  bool try_lock() { return held_.put(try_acquire()); }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    return held_.put(try_acquire_for(std::chrono::ceil<Duration>(limit)));
  }
  template <class StdClock, class StdDuration>
  bool try_lock_until(std::chrono::time_point<StdClock, StdDuration> until) {
    return try_lock_for(until - StdClock::now());
  }
  void unlock() { held_.drop(); }

 private:
  detail::ThreadLeases held_;
};

}  // namespace interlock
