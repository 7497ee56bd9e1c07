// Drives one LeaseMachine and one Succession in virtual time, as core/hold.hpp does with threads, and tells the checks
// what its user believes.
#pragma once

#include "checks.hpp"
#include "core/lease_machine.hpp"
#include "core/succession.hpp"
#include "pursuit.hpp"

namespace simulation {

class Hold : public std::enable_shared_from_this<Hold> {
 public:
  /// Granted to the pursuit just now.
  Hold(Client& client, Checks& checks, const Pursuit& pursuit, Time asked);
  void begin();

  [[nodiscard]] bool held() const {
    return !released_ && machine_.state(client_.now()) == interlock::LeaseState::held;
  }
  [[nodiscard]] Mode mode() const { return held_.mode(held_.claim().parts.front()); }
  [[nodiscard]] Duration ttl() const { return machine_.ttl(); }
  using Then = std::function<void()>;
  void extend(Duration ttl);
  /// Upgrades, or downgrades, within the limit.
  void change(Mode to, Duration limit, Then then);
  /// `again`: until the store answers, as long as a call may take; else once.
  void release(bool again, Then then);

 private:
  using LeaseMachine = interlock::core::LeaseMachine;

  void due();
  void perform(const LeaseMachine::Step& step);
  void schedule(TimePoint when);
  void send_renewal(TimePoint deadline);
  void send_question(TimePoint deadline);
  void changed(Pursuit& pursuit, Time asked);
  void give_back(TimePoint deadline, Duration pause, bool again, bool maybe_done, Then then);
  void given_back(const Answer& answer, bool maybe_done, bool was_held);
  void forget();
  void believe(const Claim& claim);
  void believe_on();
  [[nodiscard]] ClaimPtr claim() const { return std::make_shared<const Claim>(held_.claim()); }
  [[nodiscard]] Time until() const { return client_.when(machine_.valid_until()); }

  Client& client_;
  Checks& checks_;
  Time granted_;
  interlock::core::Succession held_;
  LeaseMachine machine_;
  std::uint64_t belief_ = 0;
  std::uint64_t generation_ = 0;
  bool released_ = false;
  bool was_held_ = false;  // when its release began
  TimePoint ticks_at_ = TimePoint::max();
};

}  // namespace simulation
