// The process between `interlock run` and its command, which outlives neither.
//
//     interlock run  ──socket──  guardian  ──  command, in a process group of its own
//     takes, renews and          starts it, ends it,
//     releases the lock          reports what became of it
//
// Why a process of its own: the command must be dead before anybody else can get the lock, and that
// must hold even if `interlock run` is killed with SIGKILL, stopped, or hangs. So from the moment
// the command starts, no death of a process frees the lock: only its release, or the TTL. The
// guardian
//
//   - is entrusted with the lock. If the socket closes, because `interlock run` is gone, it sends
//     SIGKILL to the command's group, waits until all of it is dead, and releases the lock.
//   - knows until when the lease is valid, and enforces it alone, by the clock that also counts
//   while
//     the machine is suspended. `interlock run` only tells it when a renewal moved the deadline.
//
// If the guardian is killed, the kernel kills the command (PR_SET_PDEATHSIG), and `interlock run`
// kills the rest of its group before it releases the lock. If both are killed, the TTL frees it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "interlock/clock.hpp"
#include "signals.hpp"

namespace cli {

/// When a command has to end, given that its lease does: asked to at `term_at`, unless a renewal
/// comes before, and killed at `kill_at`, so that it is dead by the end of the lease.
struct Ending {
  interlock::TimePoint term_at;
  interlock::TimePoint kill_at;

  /// Renewal comes at a third of the TTL, so a healthy lease never gets near its last third.
  static interlock::Duration grace(interlock::Duration ttl) {
    return std::min<interlock::Duration>(ttl / 3, std::chrono::seconds(5));
  }
  static interlock::Duration margin(interlock::Duration ttl) {
    return std::min<interlock::Duration>(ttl / 10, std::chrono::milliseconds(500));
  }
  static Ending of(interlock::TimePoint valid_until, interlock::Duration ttl) {
    return {valid_until - grace(ttl), valid_until - margin(ttl)};
  }
};

/// What goes over the socket, both ways; one packet each.
struct Order {
  enum class Kind : std::int32_t { entrust, start, deadline, signal, lost, dismiss } kind;
  std::int32_t signal = 0;          ///< signal: for the whole group
  bool foreground = false;          ///< start: the command gets the terminal
  interlock::TimePoint deadline{};  ///< start, deadline: the lease's valid_until
  interlock::Duration ttl{};        ///< start, deadline
};
struct News {
  enum class Kind : std::int32_t {
    started,      ///< `value`: process id, which is also the group's
    not_started,  ///< `value`: errno
    stopped,      ///< `value`: by which signal
    asked,        ///< somebody sent the guardian the signal `value`, and means the command
    ended,        ///< `value`: wait status of the command
  } kind;
  std::int32_t value = 0;
  bool for_the_lease = false;  ///< ended: made to, because the lease did; the whole group is dead
};

/// The handle that `interlock run` has on it.
class Guardian {
 public:
  /// Forks it. Call this before there is any other thread.
  Guardian(const std::vector<std::string>& command, const Signals& signals);
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// Ends it, and the command with it if that still runs. Waits for both.
  ~Guardian();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// From now on it releases the lock of this token if we are gone; until it is dismissed.
  void entrust(const std::string& url, const std::string& token);
  void dismiss() const { send({.kind = Order::Kind::dismiss}); }
  /// "NAME=value" sets a variable of the command's environment, "NAME" takes it out.
  void start(const Order& order, const std::vector<std::string>& environment);
  void send(const Order& order) const;
  void forward(int signal) const;

  /// What has come, if anything has.
  std::optional<News> next();
  /// It closed its side: it was killed.
  [[nodiscard]] bool gone() const { return gone_; }

 private:
  void send(const Order& order, const std::vector<std::string>& texts);

  pid_t pid_ = -1;
  Descriptor socket_;
  bool gone_ = false;
};

/// The guardian's own side; see guard.cpp.
[[noreturn]] void guard(Descriptor socket, const std::vector<std::string>& command,
                        const sigset_t& original_mask) noexcept;

/// Longer than any environment that `start` sends: names and labels are short.
inline constexpr std::size_t kLargestPacket = 32768;

}  // namespace cli
