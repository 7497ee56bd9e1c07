// Where a single flight's values are made: the cache, the lock of each key, the generator.
// What the callers of one process share is in flights.hpp.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interlock/mutex.hpp"
#include "interlock/observer.hpp"
#include "interlock/rw_lock.hpp"
#include "interlock/single_flight.hpp"
#include "recipes/cached.hpp"

namespace interlock::flights {

using Generate = std::function<std::string(const std::string& key, std::stop_token stop)>;

class Workshop {
 public:
  Workshop(Client client, Cache cache, Generate generate, SingleFlightOptions options);
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  [[nodiscard]] const SingleFlightOptions& options() const noexcept { return options_; }

  /// What is in the cache and may be given out.
  [[nodiscard]] std::optional<Cached> look(const std::string& key) const;
  /// A fresh value that should be made anew before it is asked for, or a stale one.
  [[nodiscard]] bool due(const Cached& cached) const;
  void remove(const std::string& key, const Wait& wait) const;

  [[nodiscard]] std::string lock_name(const std::string& key) const;
  /// Written to by the one that generates, read by those who wait for it.
  [[nodiscard]] RwLock lock(const std::string& key) const;

  /// Generates and stores, under the exclusive lease. What the generator throws is told to those who
  /// wait in other processes, and passes on.
  std::string make(const std::string& key, Lease& lease, std::stop_source& stop);
  /// Throws GenerationFailed if it is known that a generator in another process threw since then.
  void check_failure(const std::string& key, TimePoint since) const;

  /// Another process made it, while this one waited: for those who watch.
  void found(const std::string& key, Duration waited) const {
    client_.tell(Event::found, lock_name(key), waited);
  }
  /// Something that is no caller's error.
  void problem(const std::string& key, std::exception_ptr what) const noexcept;

 private:
  /// A lock that nobody waits for. It is held for a while to say, in its label, how a run failed.
  [[nodiscard]] std::string note_name(const std::string& key) const;
  [[nodiscard]] std::string safe(const std::string& key) const;
  void store(const std::string& key, const std::string& value, Duration took, const Lease& lease);
  void tell(const std::string& key, const std::exception_ptr& error, const Lease& lease);
  [[nodiscard]] std::optional<std::string> note_since(const std::string& key,
                                                      TimePoint since) const;
  [[nodiscard]] Lease leave_note(const std::string& key, const std::string& text) const;

  const Client client_;
  const Cache cache_;
  const Generate generate_;
  const SingleFlightOptions options_;
  const Freshness freshness_;

  std::mutex mutex_;
  std::vector<Lease> notes_;  // of a store whose leases end with their client
};

enum class Climb {
  up,       ///< the reader is the writer now
  refused,  ///< another reader was quicker, and waits for this one to leave
  lost,     ///< the lease was lost meanwhile
  stopped,
};

/// Turns a reader into the one who generates, when all other readers have left.
Climb climb(Lease& lease, const std::stop_token& stop);

}  // namespace interlock::flights
