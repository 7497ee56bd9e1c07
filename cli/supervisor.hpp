// While the command runs: keeps the guardian told, forwards signals, lends the terminal.
#pragma once

#include "events.hpp"
#include "guardian.hpp"
#include "interlock/lease.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace cli {

struct Ended {
  enum class How {
    by_itself,      ///< `value`: its wait status
    for_the_lease,  ///< the lease was about to end, so it was made to; the whole group is dead
    not_started,    ///< `value`: errno
    unguarded,      ///< somebody killed the guardian; the whole group is dead
  } how;
  int value = 0;
  Left left = Left::none;  ///< processes that could not be ended have ended by themselves
};

class Supervisor {
 public:
  Supervisor(Guardian& guardian, const interlock::Lease& lease, const Events& events,
             const Signals& signals, std::string title)
      : guardian_(guardian),
        lease_(lease),
        events_(events),
        signals_(signals),
        title_(std::move(title)) {}

  /// Runs the command to its end.
  Ended run(const std::vector<std::string>& environment);

 private:
  void watch_lease();
  void on_signal(int signal);
  std::optional<Ended> read_board();
  Ended unguarded();
  void tell_left(Left left);
  void tell_refused(int signal) const;
  void kill_group() const;
  [[nodiscard]] interlock::TimePoint overdue_at() const;

  Guardian& guardian_;
  const interlock::Lease& lease_;
  const Events& events_;
  const Signals& signals_;
  std::string title_;  ///< of the lock
  Terminal terminal_;
  pid_t group_ = 0;              ///< of the command; 0: not started
  interlock::TimePoint told_{};  ///< the deadline that the guardian knows
  bool told_lost_ = false;
  Left told_left_ = Left::none;
};

}  // namespace cli
