// SIGTERM and SIGINT as a request to end in order, for programs that have no signal handling of their own:
//
//     int main() {
//       const interlock::Termination termination;   // the first line
//       auto attempt = mutex.try_acquire_for(1h, termination.token());
//       if (!attempt) return 1;                      // also if a signal ended the wait
//       while (*attempt && !termination.requested()) work();
//     }                                              // the lease is released here
//
// Without it, SIGTERM (systemd, Docker, Kubernetes) and Ctrl-C end the process at once. No destructor runs then, and
// most stores keep its locks until their TTL has ended.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <stop_token>

namespace interlock {

/// While the object lives, the first SIGTERM or SIGINT fires `token()`. A second one ends the process, as it would have
/// without this object: so a program that hangs can still be ended.
///
/// What it does:
/// - The constructor blocks both signals in the calling thread. Threads that are started later inherit that, so it comes
///   before the first thread. Threads that were there already must block the signals themselves.
/// - A thread of its own waits for the signals. Another one fires the token: callbacks run there and may take their time.
/// - What comes within half a second after the first signal counts as the same request: timeout(1), and a wrapper in the
///   foreground of a terminal, send it twice.
/// - A signal that the process ignores stays ignored, like SIGINT in a background job of a shell, and under nohup(1).
/// - The destructor restores the signal mask of the calling thread. Signals have their usual effect from then on. It waits
///   for callbacks of the token that run.
///
/// What it does not do:
/// - It ends nothing by itself. The program passes the token to its waits, looks at `requested()` in its loops, and returns
///   from main. A wait then ends as `cancelled`; acquire() throws that as an Error, which the program has to catch.
/// - SIGHUP, SIGQUIT and all other signals keep their effect; so does SIGKILL, after which the TTL ends the locks.
/// - Programs that this one starts inherit the blocked signals, and could not be ended by them. After fork, restore the mask
///   before exec: `sigprocmask(SIG_SETMASK, &termination.original_mask(), nullptr)`; for posix_spawn there is
///   posix_spawnattr_setsigmask. std::system and popen offer no place for that.
/// - A forked child that goes on without exec has the object, but not its threads: signals stay blocked there, and its token
///   never fires. Restore the mask there, too, and make an object of the child's own.
/// - In the first process of a container (PID 1), Linux ignores the second signal, as it would have ignored the first.
///
/// One object in a process, made and destroyed by the same thread. `token()` and `requested()` may be called by any thread.
class Termination {
 public:
  /// Throws Error (unreachable) if the system has no thread or file descriptor left.
  Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
  ~Termination();

  /// Fires with the first signal.
  [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }
  [[nodiscard]] bool requested() const noexcept { return stop_.stop_requested(); }
  /// The calling thread's signal mask before the constructor changed it, for programs that this one starts.
  [[nodiscard]] const sigset_t& original_mask() const noexcept { return original_; }

 private:
  class Watch;

  std::stop_source stop_;
  sigset_t original_{};
  std::uint64_t epoch_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace interlock
