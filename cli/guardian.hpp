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
//     while the machine is suspended. `interlock run` only tells it when a renewal moved the deadline.
//   - renews the lock itself if nobody else does, for as long as there are processes of the command
//     that it may not kill: those that have become another user's (sudo).
//
// If the guardian is killed, the kernel kills the command (PR_SET_PDEATHSIG, unless it has become
// another user's), and `interlock run` kills the rest of its group, and keeps the lock until all of
// it has ended. If both are killed, the TTL frees it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "interlock/clock.hpp"
#include "process_group.hpp"
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

/// What became of the lock while there are processes of the command that can't be ended.
enum class Left : std::int32_t { none, kept, lost };

/// "1 process of the command can't be ended …; the lock is kept until it has ended"
std::string describe(Left left, const std::vector<Member>& members);

/// A set of signals, as a number.
using SignalSet = std::uint64_t;
inline constexpr SignalSet signal_bit(int signal) { return SignalSet{1} << (signal - 1); }

/// What the two tell each other, in memory that they share. These are levels and not messages: there is
/// no queue that could be full, so nothing is lost if one of them is stopped, or slow. A byte on the
/// socket says "look at it", and the end of the socket that the other one is gone.
struct Board {
  using TimePoint = interlock::TimePoint;

  // Written by `interlock run`. How much of the file of texts is there to be read:
  std::atomic<std::size_t> entrusted{0};  ///< up to the end of URL, token and title of the lock
  std::atomic<std::size_t> started{0};    ///< up to the end of the command's environment: start it
  std::atomic<bool> foreground{false};    ///< the command gets the terminal
  std::atomic<bool> dismissed{false};     ///< the lock is none of the guardian's business any more
  std::atomic<bool> lost{false};
  std::atomic<TimePoint> deadline{TimePoint{}};  ///< the lease's valid_until
  std::atomic<interlock::Duration> ttl{interlock::Duration{}};
  std::atomic<SignalSet> forward{0};  ///< for the command's group

  // Written by the guardian.
  std::atomic<pid_t> group{0};         ///< of the command, which is its process id: it was started
  std::atomic<std::int32_t> error{0};  ///< errno: it could not be started
  std::atomic<SignalSet> asked{0};     ///< sent to the guardian, and meant for the command
  std::atomic<SignalSet> refused{0};   ///< we may not send these to the command
  std::atomic<std::int32_t> stopped{0};  ///< the signal that stopped the command
  std::atomic<Left> left{Left::none};
  std::atomic<bool> for_the_lease{false};  ///< it was ended, because the lease ends
  std::atomic<std::int32_t> status{0};     ///< its wait status
  /// The command has ended; if that was for the lease, its whole group is dead. Written last.
  std::atomic<bool> ended{false};
};
static_assert(std::atomic<Board::TimePoint>::is_always_lock_free);

/// The first signal of the set, which is taken out of it.
inline std::optional<int> take_signal(std::atomic<SignalSet>& set) {
  const SignalSet all = set;
  if (all == 0) return {};
  const int signal = std::countr_zero(all) + 1;
  set &= ~signal_bit(signal);
  return signal;
}

/// Ends of a socket that carries nothing but "look".
void ring(const Descriptor& socket);
/// Takes in all that was rung. False: the other end is gone.
bool still_there(const Descriptor& socket);

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
  void entrust(const std::string& url, const std::string& token, const std::string& title);
  void dismiss();
  /// "NAME=value" sets a variable of the command's environment, "NAME" takes it out.
  void start(bool foreground, interlock::TimePoint deadline, interlock::Duration ttl,
             const std::vector<std::string>& environment);
  void move_deadline(interlock::TimePoint deadline);
  void tell_lost();
  /// To the command's group.
  void forward(int signal);
  /// Continues the guardian if somebody has stopped it. SIGCHLD tells of that.
  void wake() const;

  /// Takes in what it has to say; the board has it then.
  void look() { gone_ = gone_ || !still_there(socket_); }
  /// When it was last looked at, it had been killed.
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] Board& board() { return *board_; }

 private:
  struct Unmap {
    void operator()(Board* board) const noexcept;
  };

  /// Puts the texts into the file; where they end.
  std::size_t write(const std::vector<std::string>& texts);

  pid_t pid_ = -1;
  Descriptor socket_;
  Descriptor texts_;
  std::size_t written_ = 0;
  std::unique_ptr<Board, Unmap> board_;
  bool gone_ = false;
};

/// What the guardian gets.
struct Ward {
  Descriptor socket;
  Descriptor texts;  ///< a file in memory
  Board& board;
};

/// The guardian's own side; see guard.cpp.
[[noreturn]] void guard(Ward ward, const std::vector<std::string>& command,
                        const sigset_t& original_mask) noexcept;

}  // namespace cli
