// What the callers of one process share: for each key, one thread that gets its value.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "recipes/workshop.hpp"

namespace interlock::flights {

/// One key, from the first caller who misses it until its value or its error is known.
struct Flight {
  explicit Flight(std::string k) : key(std::move(k)) {}

  const std::string key;
  std::stop_source nobody_waits{};  ///< then it leaves the queue
  std::stop_source stop{};          ///< then the generator should stop

  // All below is guarded by the mutex of Flights.

  std::condition_variable_any landed{};
  int waiters = 0;
  bool background = false;                  ///< nobody needs to wait for it
  std::optional<std::string> instead_of{};  ///< these bytes will not do: they are to be replaced
  bool generating = false;                  ///< from then on it is not given up
  bool over = false;
  std::optional<std::string> value{};  ///< neither that nor an error: it was given up
  std::exception_ptr error{};
  const Flight* waits_for = nullptr;  ///< its generator asked for another key
  std::thread thread{};
};

class Flights {
 public:
  Flights(Client client, Cache cache, Generate generate, SingleFlightOptions options);
  Flights(const Flights&) = delete;
  Flights& operator=(const Flights&) = delete;
  ~Flights();

  [[nodiscard]] Workshop& workshop() noexcept { return workshop_; }
  /// Waits for a run that is under way.
  void remove(const std::string& key, const Wait& wait);

  /// How many callers of this process wait for the key.
  [[nodiscard]] int waiting(const std::string& key) const;
  /// This is a forked child: the threads stayed behind, and the mutex may be locked forever.
  [[nodiscard]] bool forked() const noexcept;

  /// From the cache at once, or by waiting. Nothing: late, or stopped.
  std::optional<std::string> get(const std::string& key, const Wait& wait);
  /// Something else than what is there.
  std::optional<std::string> replace(const std::string& key, const Wait& wait);

 private:
  using Shared = std::shared_ptr<Flight>;

  // On the callers' threads:
  void check_not_forked() const;
  std::optional<std::string> join(const std::string& key, std::optional<std::string> instead_of,
                                  const Wait& wait);
  void refresh(const std::string& key, const Cached& old) noexcept;
  void start(const Shared& flight);
  void check_deadlock(const std::string& wanted) const;
  void leave(const Shared& flight, std::unique_lock<std::mutex>& lock);
  void join_finished();

  // On the flight's own thread:
  void fly(const Shared& flight) noexcept;
  std::optional<std::string> pursue(Flight& flight);
  std::optional<std::string> generate(Flight& flight, Lease lease);
  [[nodiscard]] bool may_queue(Flight& flight);
  [[nodiscard]] bool will_do(Flight& flight, const Cached& cached);
  [[nodiscard]] bool begin(Flight& flight);
  void withdraw(Flight& flight);

  Workshop workshop_;
  const std::uint64_t epoch_;

  mutable std::mutex mutex_;
  std::condition_variable all_landed_;
  std::unordered_map<std::string, Shared> open_;  ///< those that a caller may join
  std::set<Shared> flying_;                       ///< all that have a thread
  std::map<std::thread::id, Flight*> generators_;
  std::vector<std::thread> finished_;
  int in_background_ = 0;
  std::unordered_map<std::string, TimePoint> resting_;
};

}  // namespace interlock::flights
