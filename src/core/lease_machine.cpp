#include "core/lease_machine.hpp"

#include <algorithm>

#include "interlock/duration.hpp"

namespace interlock::core {

namespace {

// When to renew what was asked for at `sent`. A little early, at one of a few moments that all leases
// of a process share: ten thousand of them are renewed in batches, not in ten thousand turns.
TimePoint renewal_of(TimePoint sent, Duration ttl) {
  const auto moment = std::max(Duration(1), ttl / 96);
  const auto at = (sent + ttl / 3).time_since_epoch();
  return TimePoint(at - at % moment);
}

}  // namespace

LeaseMachine::LeaseMachine(Plan plan, TimePoint sent, TimePoint now)
    : plan_(std::move(plan)),
      acquired_(now),
      valid_until_(sent + plan_.ttl - plan_.drift(plan_.ttl)),
      renew_at_(plan_.renew ? renewal_of(sent, plan_.ttl) : TimePoint::max()) {}

LeaseMachine::Step LeaseMachine::tick(TimePoint now) {
  if (state_ != LeaseState::held) return {};
  const bool held_too_long = plan_.max_hold && now >= later(acquired_, *plan_.max_hold);
  if (now >= valid_until_) {
    if (held_too_long) {
      return lose("it was held longer than max_hold, " + format_duration(*plan_.max_hold), false);
    }
    return lose(plan_.renew ? "it could not be renewed in time" : "its time to live has ended",
                false);
  }
  if (now < renew_at_) return {};
  if (held_too_long) {
    renew_at_ = TimePoint::max();
    return {};
  }
  return renew_now(now);
}

LeaseMachine::Step LeaseMachine::renew_now(TimePoint now) {
  // If no answer comes, ask once more: renewing twice does no harm.
  if (renew_at_ != TimePoint::max()) renew_at_ = now + plan_.ttl / 6;
  return {.renew = true, .call_deadline = std::min(valid_until_, later(now, plan_.call_timeout))};
}

LeaseMachine::Step LeaseMachine::renewed(TimePoint now, TimePoint sent, Duration ttl,
                                         Verdict verdict, const std::string& why) {
  if (state_ != LeaseState::held) return {};
  if (now >= valid_until_) return tick(now);  // too late, whatever it says
  if (verdict == Verdict::lost) return taken(now, why);
  const bool renewing = renew_at_ != TimePoint::max();
  if (verdict == Verdict::granted) {
    valid_until_ = std::max(valid_until_, sent + ttl - plan_.drift(ttl));
    if (renewing) renew_at_ = renewal_of(sent, plan_.ttl);
  } else if (renewing) {
    renew_at_ = std::min(renew_at_, now + plan_.ttl / 12);
  }
  return {};
}

LeaseMachine::Step LeaseMachine::hurry(TimePoint now) {
  if (state(now) != LeaseState::held) return tick(now);
  return renew_now(now);
}

LeaseMachine::Step LeaseMachine::taken(TimePoint, const std::string& why) {
  if (state_ != LeaseState::held) return {};
  return lose("the store says that it is not held any more: " +
                  (why.empty() ? "broken by someone, or the store lost it" : why),
              true);
}

LeaseMachine::Step LeaseMachine::lose(std::string reason, bool forget) {
  state_ = LeaseState::lost;
  reason_ = std::move(reason);
  return {.lose = true, .forget = forget};
}

void LeaseMachine::stop_renewing() { renew_at_ = TimePoint::max(); }

void LeaseMachine::go_on_renewing(TimePoint now) {
  if (plan_.renew) renew_at_ = now;
}

void LeaseMachine::end(LeaseState how, std::string reason) {
  if (state_ != LeaseState::held) return;
  state_ = how;
  reason_ = std::move(reason);
}

LeaseState LeaseMachine::state(TimePoint now) const noexcept {
  if (state_ == LeaseState::held && now >= valid_until_) return LeaseState::lost;
  return state_;
}

TimePoint LeaseMachine::next_tick() const noexcept {
  return state_ == LeaseState::held ? std::min(valid_until_, renew_at_) : TimePoint::max();
}

}  // namespace interlock::core
