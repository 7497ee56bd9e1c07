// Get or generate: one process makes what a cache lacks, and all the others wait for it.
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include "interlock/client.hpp"

namespace interlock {

namespace flights {
class Flights;
}

/// Your cache, as functions: Redis, a directory, a table, anything that all processes see. They are
/// called from any thread, several at a time. Keys and values are any bytes.
struct Cache {
  /// The value, or nothing. What it throws passes to the caller.
  std::function<std::optional<std::string>(const std::string& key)> get;
  /// Stores a value, and may throw: whoever waits in this process gets the value all the same, and
  /// SingleFlightOptions::on_problem is told.
  std::function<void(const std::string& key, const std::string& value)> put;
  /// What SingleFlight::remove needs. Optional.
  std::function<void(const std::string& key)> remove{};
  /// Called instead of `put`, by those whose cache can compare: it keeps what it has if that came with
  /// a higher fence. Then a generator that lost its lock can't overwrite a newer value. Optional.
  std::function<void(const std::string& key, const std::string& value, Fence fence)> put_fenced{};
};

struct SingleFlightOptions {
  /// The lock of a key is named by this and the key (or the key's SHA-256, if the key is long or is
  /// not plain text). One for each cache: those who share it take turns.
  std::string prefix = "single-flight:";
  /// How long the others wait if a generating process is killed. Not a limit for the generator, as
  /// the lease renews itself.
  Duration ttl = std::chrono::seconds(30);
  /// What for, in your words. Others see it in `interlock who`.
  std::string label{};
  /// The longest that get(), force() and remove() wait. Empty: as long as it takes.
  std::optional<Duration> max_wait{};

  /// How long a value counts as fresh. Values are then stored with a line in front that says when they
  /// were made, by the wall clock: other readers of the cache have to know. Empty: for as long as the
  /// cache keeps it, and values are stored as they are.
  std::optional<Duration> fresh_for{};
  /// After that, for so long, the old value is given out at once, and one process makes a new one in
  /// the background. Later still, it counts as missing.
  Duration stale_for{};
  /// A fresh value is made anew in the background shortly before its time, sooner the longer it takes
  /// to make, and at random, so that not all come at once. 0: never; 2: twice as early.
  double early = 1.0;
  /// The most that are made in the background at once. Others are left to a later get().
  int refreshes = 4;

  /// Who waited in another process for a generator that threw, gets its error: as text, which is kept
  /// in the lock store for so long, where others can read it. Zero: it is told to nobody, and they
  /// generate themselves, one after another.
  Duration tell_errors_for = std::chrono::seconds(5);

  /// Told what is no caller's error: a value could not be stored (or was not, as its lock was lost), or
  /// a refresh in the background failed. Called from any thread.
  std::function<void(const std::string& key, std::exception_ptr problem)> on_problem{};
  /// The wall clock, for tests of what depends on fresh_for. Empty: the real one.
  std::function<std::chrono::system_clock::time_point()> now{};
};

/// Another process generated, and its generator threw: the text of it.
class GenerationFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Looks into the cache; if the value is missing, takes the key's lock, looks again, generates, stores.
/// However many callers in however many processes: the generator runs once, also if it takes longer
/// than the TTL, and all of them get its value, or its error.
///
///     SingleFlight tiles(locks, cache, [](const std::string& key) { return render(key); });
///     const std::string png = tiles.get("7/66/42");
///
/// All callers of one process who want a key wait for one thread, which generates, or waits for the
/// process that does. Processes wait as readers of the lock, so that they are all let in at once when the value is there.
///
/// The generator is called with the key, and with a std::stop_token if it takes one: stopped if the
/// lock is lost or this object is destroyed. It runs on a thread of its own, as it may outlast its
/// callers: whoever gives up does not spoil it for the others. If its token was stopped meanwhile, its value
/// goes to those who wait in this process, and is not stored: it may be half of one.
///
/// Thread-safe. The destructor waits for generators that still run, since they are your code and may
/// use what you destroy next; and for ClientOptions::release_timeout at most after that.
class SingleFlight {
 public:
  /// Throws Error (invalid) for options and functions that make no sense.
  template <class Generator>
  requires std::is_invocable_r_v<std::string, Generator&, const std::string&> ||
      std::is_invocable_r_v<std::string, Generator&, const std::string&, std::stop_token>
      SingleFlight(Client client, Cache cache, Generator generate, SingleFlightOptions options = {})
      : SingleFlight(with_stop(std::move(generate)), std::move(client), std::move(cache),
                     std::move(options)) {}
  SingleFlight(SingleFlight&&) noexcept;
  SingleFlight& operator=(SingleFlight&&) noexcept;
  ~SingleFlight();

  /// The value. A hit costs one look into the cache and nothing else. Throws what the generator or the
  /// cache throws (GenerationFailed, if that was in another process), and Error: timed_out, cancelled,
  /// unreachable, …; deadlock, if the generator of this key, on its own thread, asks for it again.
  std::string get(const std::string& key, std::stop_token stop = {});
  /// The same, and nothing if it takes longer or is stopped.
  std::optional<std::string> try_get_for(const std::string& key, Duration limit,
                                         std::stop_token stop = {});

  /// A new value, even if there is one. Concurrent ones share a run, and one that is under way counts,
  /// though it may have begun before the call: to be sure, remove() first. Between processes, the new
  /// value is known by its bytes, or with fresh_for by its time; if it looks like the old one, each
  /// process generates once.
  std::string force(const std::string& key, std::stop_token stop = {});

  /// There is a value that get() would give out at once.
  [[nodiscard]] bool exists(const std::string& key) const;

  /// Takes the value out of the cache, under the lock: waits for a run that is under way, so that it
  /// can't put back what was removed.
  void remove(const std::string& key, std::stop_token stop = {});

 private:
  using Generate = std::function<std::string(const std::string& key, std::stop_token stop)>;

  template <class Generator>
  static Generate with_stop(Generator generate) {
    if constexpr (std::is_invocable_r_v<std::string, Generator&, const std::string&,
                                        std::stop_token>) {
      return generate;
    } else {
      return [generate = std::move(generate)](const std::string& key,
                                              const std::stop_token&) mutable -> std::string {
        return generate(key);
      };
    }
  }
  SingleFlight(Generate generate, Client client, Cache cache, SingleFlightOptions options);

  /// Leaves alone what belongs to the parent of a fork.
  struct Dispose {
    void operator()(flights::Flights* flights) const noexcept;
  };
  std::unique_ptr<flights::Flights, Dispose> flights_;
};

}  // namespace interlock
