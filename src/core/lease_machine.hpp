// How a lease lives: when to renew it, until when it is ours, and how it ends.
//
// A plain state machine like Acquisition: events in, the next step out.
//
//     state    | event                          | next     | step
//     ---------+--------------------------------+----------+-----------------------------------
//     held     | a third of the ttl has passed  | held     | renew
//     held     | renewal granted, in time       | held     | (validity moves; next renewal set)
//     held     | renewal unknown, or unanswered | held     | (again soon, while it is valid)
//     held     | renewal says lost              | lost     | lose, and forget what may be left
//     held     | validity ends                  | lost     | lose
//     held     | max_hold has passed            | held     | (no renewal any more)
//     held     | the user ends it               | released, or lost if the store did not have it |
//     lost     | anything                       | lost     |
//     released | anything                       | released |
//
// Validity is counted from *before* the request left: sent + ttl - drift. It never moves back, and
// once it has ended there is no way back.
#pragma once

#include <functional>
#include <optional>

#include "interlock/backend.hpp"
#include "interlock/lease.hpp"

namespace interlock::core {

class LeaseMachine {
 public:
  struct Plan {
    Duration ttl{};
    std::function<Duration(Duration ttl)> drift{};
    bool renew = true;
    std::optional<Duration> max_hold{};
    Duration call_timeout = std::chrono::seconds(5);
  };

  /// What to do now.
  struct Step {
    bool renew = false;
    TimePoint call_deadline{};
    bool lose = false;    ///< tell the user
    bool forget = false;  ///< something of this owner may still be in the store
  };

  LeaseMachine(Plan plan, TimePoint sent, TimePoint now);

  Step tick(TimePoint now);
  /// `sent` and `ttl` as they were when the renewal was sent.
  Step renewed(TimePoint now, TimePoint sent, Duration ttl, Verdict verdict,
               const std::string& why = {});
  /// Renew as soon as possible: somebody hinted that something happened.
  Step hurry(TimePoint now);
  /// The store says that it is not ours any more, and why if it knows.
  Step taken(TimePoint now, const std::string& why = {});
  /// From now on renewals ask for this TTL.
  void set_ttl(Duration ttl) { plan_.ttl = ttl; }
  void stop_renewing();
  /// As before it was stopped.
  void go_on_renewing(TimePoint now);
  /// It ends, one way or the other, because its user ended it.
  void end(LeaseState how, std::string reason = {});

  [[nodiscard]] LeaseState state(TimePoint now) const noexcept;
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] Duration ttl() const noexcept { return plan_.ttl; }
  [[nodiscard]] TimePoint next_tick() const noexcept;
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  Step lose(std::string reason, bool forget);
  Step renew_now(TimePoint now);

  Plan plan_;
  TimePoint acquired_;
  TimePoint valid_until_;
  TimePoint renew_at_;
  LeaseState state_ = LeaseState::held;
  std::string reason_;
};

}  // namespace interlock::core
