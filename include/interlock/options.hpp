// What can be set on a lock, on a wait, and on a client: one struct each, with defaults that fit
// most.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "interlock/clock.hpp"

namespace interlock {

class Observer;

/// How often and how fast to try again, where nothing tells when to: after a store failed to
/// answer, on a store without a queue, and in `try_acquire_times`.
struct Retry {
  int attempts = 10;  ///< tries in all, the first one included
  Duration first = std::chrono::milliseconds(100);
  Duration max = std::chrono::seconds(5);
  double multiplier = 2.0;
  double jitter = 0.2;  ///< each delay is shortened by a random part of up to this fraction

  static constexpr Retry standard() { return {}; }
  static constexpr Retry none() { return {.attempts = 1}; }
  static constexpr Retry aggressive() {
    return {.attempts = 50,
            .first = std::chrono::milliseconds(50),
            .max = std::chrono::seconds(1),
            .multiplier = 1.5};
  }
  /// The same pause after each try, with no jitter: `Retry::every(50ms, 4)`.
  static constexpr Retry every(Duration interval, int attempts) {
    return {
        .attempts = attempts, .first = interval, .max = interval, .multiplier = 1.0, .jitter = 0.0};
  }

  /// The pause after the n-th failed try (n from 1), before jitter: first, first * multiplier, …
  [[nodiscard]] Duration delay(int failed_tries) const noexcept;
};

/// A lock's settings. Designated initialisers read best: `{.ttl = 10s, .label = "nightly"}`.
struct Options {
  /// How long the lease lives without a renewal: the time that others wait if this process is
  /// killed. Renewal comes every third of it. Longer: fewer calls; shorter: quicker recovery.
  Duration ttl = std::chrono::seconds(30);
  /// What for, in your words. Others see it in `interlock who`.
  std::string label{};
  /// Put before each name, with a colon: "billing" and "report" are the resource "billing:report". That is
  /// the name in errors, in `interlock list` and in the lease's own functions. (`namespace` is a word of
  /// C++.) Empty: names are taken as they are.
  std::string name_space{};
  /// The owner's name, such as "worker-7", for people: `interlock who`, `list --json` and inspect() show it.
  /// It decides nothing: two locks with the same owner id exclude each other, and the right to renew and to
  /// release still comes from the random Owner of the acquisition. Given and empty: Error (invalid_owner).
  std::optional<std::string> owner_id{};
  /// Makes it re-entrant: claims of the same identity don't exclude each other, and the resource is
  /// free when the last of them is released. Empty: not re-entrant.
  std::string identity{};
  /// For finding deadlocks: one who does one thing at a time, such as a worker or a job. While it waits, it
  /// does not release what it holds, and so actors that wait for each other in a circle wait for
  /// ever: see deadlock.hpp. Those who do things side by side need an actor each. `job-7>2` is a part of
  /// what `job-7` does, and job-7 keeps what it holds until that is done.
  /// Empty: the identity in this thread, if there is one; or the thread, if the client says so.
  std::string actor{};
  /// Higher ones are served first; among equals, who came first.
  std::int32_t priority = 0;
  /// The longest that acquire() waits before it throws timed_out. Empty: as long as it takes.
  std::optional<Duration> max_wait{};
  /// Renewal ends when it was held this long, so that a holder that hangs does not hold on forever:
  /// the lease is then lost when its last TTL ends. Empty: no limit.
  std::optional<Duration> max_hold{};
  /// The lease counts as lost, and lost() fires, this much before the store would end it: time for
  /// work to stop before anybody else can begin. At most a third of the TTL.
  Duration margin{};
  /// Turn renewal off only for leases that are meant to end by themselves.
  bool renew = true;
  /// "table/row" also holds "table" shared, so that whoever holds "table" excludes all its rows.
  /// Turn it off if slashes in your names mean nothing.
  bool hierarchy = true;
  /// When the store does not answer.
  Retry retry{};
  /// The process whose end ends the lease, where the store can notice that. Empty: this one. 0:
  /// none; only the TTL ends it.
  std::optional<std::int64_t> process{};
};

/// How long one acquisition waits. Everything is a case of it: `Wait::once()`, `Wait::forever()`,
/// `Wait::for_(5s)`, `Wait::times({.attempts = 4})`.
struct Wait {
  /// Empty: no limit. Zero or less: one shot, which never queues and never delays anybody.
  std::optional<Duration> limit{};
  /// One-shot tries with pauses instead of a place in the queue.
  std::optional<Retry> tries{};
  /// Gives up when it is stopped. The place in the queue is cleaned up in the background.
  std::stop_token stop{};

  static Wait forever(std::stop_token stop = {}) {
    return {.limit = {}, .tries = {}, .stop = std::move(stop)};
  }
  static Wait once() { return {.limit = Duration::zero(), .tries = {}, .stop = {}}; }
  static Wait for_(Duration limit, std::stop_token stop = {}) {
    return {.limit = limit, .tries = {}, .stop = std::move(stop)};
  }
  static Wait times(Retry tries, std::stop_token stop = {}) {
    return {.limit = {}, .tries = tries, .stop = std::move(stop)};
  }
};

/// Who is looked at for deadlocks, see deadlock.hpp.
enum class Deadlocks : std::uint8_t {
  off,
  by_actor,  ///< claims with an actor; and those with an identity, each thread for itself
  by_thread,  ///< and a thread that blocks in an acquisition: right if leases stay with their threads
};

/// A client's settings.
struct ClientOptions {
  /// Told what happens; see observer.hpp. None: costs nothing.
  std::shared_ptr<Observer> observer{};
  /// Time. Empty: the real one. Tests give a ManualClock here and to the memory store.
  std::shared_ptr<Clock> clock{};
  /// Runs the callbacks and coroutines of asynchronous acquisitions. Empty: a thread of the
  /// client's own, so that they can't hold up renewals. It must run what it is given, in any
  /// order, on any thread but the caller's stack.
  std::function<void(std::function<void()>)> executor{};
  /// How long a destructor, or the end of the process, waits for a release to be confirmed.
  Duration release_timeout = std::chrono::seconds(1);
  /// Which waits are ended with an error (deadlock) when they can't end otherwise.
  Deadlocks deadlocks = Deadlocks::by_actor;
  /// Told with Event::opened, so that a log says at the start which ttl and max_wait the program means to
  /// use. No lock takes anything from it. connect(const Config&) sets it. Empty: not told.
  std::optional<Options> told_at_start{};
};

}  // namespace interlock
