// How an acquisition goes: whom to ask when, until when, and what came of it.
//
// A plain state machine: events in, the next step out. It has no clock, no thread and no socket;
// its driver (pursuit.hpp) tells it the time and performs the steps.
//
//     phase     | event                                       | next     | step
//     ----------+---------------------------------------------+----------+-------------------------
//     idle      | start                                       | asking   | ask
//     asking    | granted, in time                            | done     |
//     asking    | granted, but it took longer than the lease  | asking   | ask (the TTL starts anew)
//     asking    | queued                                      | waiting  |
//     asking    | busy: one shot, or no tries are left, or it | done     |
//               | could queue (then waiting would never end)  |          |
//     asking    | busy otherwise                              | pausing  |
//     asking    | lost, or unknown and not retryable          | done     | forget
//     asking    | unknown, or no answer                       | pausing  |
//     asking    | the same, and no retries are left           | done     | forget
//     waiting   | wake, or heartbeat due                      | asking   | ask
//     pausing   | wake, or pause over                         | asking   | ask
//     any       | an answer to an earlier call                |          |
//     any       | deadline, cancel, or fail                   | done     | forget
//     done      | a late granted or queued, or one that may   | done     | forget
//               | have been, if it failed                     |          |
//
// "ask" is Backend::acquire, always for the same owner: asking again settles a lost reply. "forget"
// is Backend::release of that owner, in the background; not if no call has ever reached the store.
#pragma once

#include <optional>
#include <random>

#include "interlock/attempt.hpp"
#include "interlock/backend.hpp"
#include "interlock/options.hpp"

namespace interlock::core {

class Acquisition {
 public:
  struct Plan {
    Duration ttl;
    Duration drift;     ///< taken off the validity
    bool queue = true;  ///< the store may put it in line
    bool one_shot = false;
    std::optional<Retry> tries{};  ///< one-shot tries with pauses
    std::optional<TimePoint> deadline{};
    Retry retry{};  ///< when the store does not answer
    Duration heartbeat = std::chrono::seconds(1);
    Duration call_timeout = std::chrono::seconds(5);
    std::uint64_t seed = 1;  ///< for the jitter
  };

  /// What to do now.
  struct Step {
    bool ask = false;
    int call = 0;  ///< to be handed back with the reply
    TimePoint call_deadline{};
    bool forget = false;
  };

  explicit Acquisition(Plan plan) : plan_(plan), random_(plan.seed) {}

  Step start(TimePoint now);
  /// `sent` is the time of the step that asked.
  Step reply(TimePoint now, int call, TimePoint sent, Answer answer);
  Step wake(TimePoint now);
  Step tick(TimePoint now);
  Step cancel(TimePoint now);
  /// Waiting on is pointless.
  Step fail(Error why);

  [[nodiscard]] bool done() const noexcept { return phase_ == Phase::done; }
  /// When `tick` has to be called next.
  [[nodiscard]] TimePoint next_tick() const noexcept;
  [[nodiscard]] bool queue() const noexcept {
    return plan_.queue && !plan_.one_shot && !plan_.tries;
  }

  // Once done:
  [[nodiscard]] Outcome outcome() const noexcept { return outcome_; }
  [[nodiscard]] const std::optional<Error>& why() const noexcept { return why_; }
  [[nodiscard]] const std::vector<Fence>& fences() const noexcept { return fences_; }
  [[nodiscard]] TimePoint sent() const noexcept { return granted_sent_; }
  [[nodiscard]] Duration waited(TimePoint now) const noexcept { return now - started_; }
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  /// The store has answered, at least once.
  [[nodiscard]] bool answered() const noexcept { return answered_; }
  /// Refused by the only call that was made, and nothing of it is left in the store.
  [[nodiscard]] bool refused_for_certain() const noexcept {
    return done() && outcome_ == Outcome::busy && attempts_ == 1 && !partly_;
  }
  /// In the queue, by the last answer: how many are ahead.
  [[nodiscard]] std::optional<std::uint32_t> place() const noexcept { return place_; }

 private:
  enum class Phase { idle, asking, waiting, pausing, done };

  Step ask(TimePoint now);
  Step pause(TimePoint now, const Retry& policy, int failed);
  Step no_answer(TimePoint now, Error why);
  [[nodiscard]] bool nothing_wrong(TimePoint now) const noexcept;
  Step finish(Outcome outcome, bool forget);
  [[nodiscard]] bool in_flight() const noexcept { return call_deadline_ != TimePoint::max(); }

  Plan plan_;
  std::minstd_rand random_;
  Phase phase_ = Phase::idle;
  TimePoint started_{};
  int attempts_ = 0;       // times the store was asked
  int failures_ = 0;       // in a row, without an answer
  int undone_ = 0;         // grants that the store had to take back
  bool woken_ = false;     // while a call was in flight
  bool answered_ = false;  // ever
  bool reached_ = false;   // the store may know the owner
  bool partly_ = false;    // a refusal left something in the store
  TimePoint look_at_ = TimePoint::max();
  TimePoint call_deadline_ = TimePoint::max();
  std::optional<std::uint32_t> place_;

  Outcome outcome_ = Outcome::failed;
  std::optional<Error> why_;
  std::vector<Fence> fences_;
  TimePoint granted_sent_{};
};

}  // namespace interlock::core
