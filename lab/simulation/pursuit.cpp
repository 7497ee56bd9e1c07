#include "pursuit.hpp"

namespace simulation {

using interlock::core::Acquisition;

Pursuit::Plan plan_of(const Client& client, const Claim& claim, std::optional<Duration> limit) {
  const auto& traits = client.traits();
  Pursuit::Plan plan{.ttl = claim.ttl, .drift = traits.drift(claim.ttl)};
  plan.one_shot = limit && *limit <= Duration::zero();
  if (limit && !plan.one_shot) plan.deadline = client.now() + *limit;
  plan.heartbeat = traits.heartbeat;
  plan.call_timeout = traits.call_timeout;
  plan.seed = claim.owner.low;
  return plan;
}

void Pursuit::start() {
  const auto now = client_.now();
  perform(machine_.start(now), now);
  look();
}

void Pursuit::cancel() {
  if (over_) return;
  perform(machine_.cancel(client_.now()), client_.now());
  look();
}

// What takes over from a lease may have ended the lease's own hold: the lease settles it.
void Pursuit::forget() {
  if (claim_->instead_of.empty()) client_.forget(claim_);
}

void Pursuit::perform(const Acquisition::Step& step, TimePoint now) {
  if (step.ask) {
    client_.acquire(claim_, machine_.queue(), step.call_deadline,
                    [self = shared_from_this(), call = step.call, now](const Answer& answer) {
                      self->heard(call, now - answer.age, answer);
                    });
  }
  if (step.forget) forget();
}

void Pursuit::heard(int call, TimePoint sent, const Answer& answer) {
  const auto now = client_.now();
  const auto step = machine_.reply(now, call, sent, answer);
  if (over_) {
    if (step.forget) forget();
    return;
  }
  perform(step, now);
  look();
}

void Pursuit::look() {
  if (over_) return;
  if (machine_.done()) {
    over_ = true;
    if (listening_) client_.unlisten(claim_->owner);
    return done_(*this);
  }
  if (machine_.place() && !listening_) {
    listening_ = true;
    const auto woken = client_.listen(claim_->owner, [self = weak_from_this()] {
      if (const auto pursuit = self.lock(); pursuit && !pursuit->over_) {
        pursuit->perform(pursuit->machine_.wake(pursuit->client_.now()), pursuit->client_.now());
        pursuit->look();
      }
    });
    if (woken) perform(machine_.wake(client_.now()), client_.now());
  }
  if (const auto next = machine_.next_tick(); next < ticks_at_) {
    ticks_at_ = next;
    client_.at(next, [self = shared_from_this()] {
      self->ticks_at_ = TimePoint::max();
      self->tick();
    });
  }
}

void Pursuit::tick() {
  if (over_) return;
  const auto now = client_.now();
  if (now >= machine_.next_tick()) perform(machine_.tick(now), now);
  look();
}

}  // namespace simulation
