// Drives one Acquisition in virtual time, as core/pursuit.hpp does with threads.
#pragma once

#include <memory>

#include "client.hpp"
#include "core/acquisition.hpp"

namespace simulation {

class Pursuit : public std::enable_shared_from_this<Pursuit> {
 public:
  using Done = std::function<void(Pursuit&)>;
  using Plan = interlock::core::Acquisition::Plan;

  Pursuit(Client& client, ClaimPtr claim, Plan plan, Done done)
      : client_(client), claim_(std::move(claim)), machine_(plan), done_(std::move(done)) {}

  void start();
  void cancel();
  [[nodiscard]] const interlock::core::Acquisition& machine() const { return machine_; }
  [[nodiscard]] const ClaimPtr& claim() const { return claim_; }

 private:
  void perform(const interlock::core::Acquisition::Step& step, TimePoint now);
  void heard(int call, TimePoint sent, const Answer& answer);
  void forget();
  void look();
  void tick();

  Client& client_;
  ClaimPtr claim_;
  interlock::core::Acquisition machine_;
  Done done_;
  bool listening_ = false, over_ = false;
  TimePoint ticks_at_ = TimePoint::max();
};

/// What a claim's lock asks for, see core/pursuit.cpp. `limit`: none, as long as it takes; zero: once.
Pursuit::Plan plan_of(const Client& client, const Claim& claim, std::optional<Duration> limit);

}  // namespace simulation
