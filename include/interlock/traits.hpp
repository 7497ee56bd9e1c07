// What a store can promise. Everything above the seam asks here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "interlock/clock.hpp"

namespace interlock {

struct Traits {
  std::string name;  ///< "memory", "file", …
  std::string
      where;  ///< the address without secrets, for errors: "file:///run/user/1000/interlock"

  bool fences = true;            ///< Lease::fence() works
  bool queues = true;            ///< waiters are served in order; else they try again now and then
  bool shared = true;            ///< RwLock works
  bool slots = true;             ///< Semaphore works
  bool atomic_claims = true;     ///< several resources in one step, visible half-taken to nobody
  bool across_processes = true;  ///< other processes see the locks
  bool across_hosts = true;      ///< other machines see the locks
  bool notices_death = false;    ///< a killed holder is freed at once, not only by its TTL
  bool detaches = true;          ///< a lease can outlive its client, and go over to another

  std::string why_no_slots{};  ///< for the error, if there is more to say than that
  /// About how the store is set up, for people. A client's observer gets them as Event::warned.
  std::vector<std::string> warnings{};

  /// A waiter asks again at least this often; the store may forget a waiter that does not.
  Duration heartbeat = std::chrono::seconds(1);
  /// How long one call may take before it counts as unanswered.
  Duration call_timeout = std::chrono::seconds(5);
  /// Taken off the validity of every lease: clocks that run differently, and timer granularity.
  Duration drift_fixed = std::chrono::milliseconds(2);
  double drift_rate = 0.0;  ///< and this fraction of the ttl

  /// How long before the TTL's end the holder has to stop: fixed part and rate, but never more
  /// than a fifth of a short TTL.
  [[nodiscard]] Duration drift(Duration ttl) const noexcept;
};

}  // namespace interlock
