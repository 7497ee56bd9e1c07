#include "core/forget.hpp"

namespace interlock::core {

Forget::Forget(std::shared_ptr<Engine> engine, Claim claim)
    : engine_(std::move(engine)),
      claim_(std::move(claim)),
      // The last message of this owner may still be on its way.
      until_(engine_->now() + claim_.ttl + engine_->traits().call_timeout) {}

void Forget::start() { due(engine_->now()); }

void Forget::due(TimePoint now) {
  if (now >= until_) return;
  const auto tries = ++tries_;
  // If no answer comes, this is when to ask again.
  engine_->keeper().schedule(shared_from_this(),
                             now + engine_->traits().call_timeout + Retry::standard().delay(tries));
  engine_->backend().release(
      claim_, {.deadline = now + engine_->traits().call_timeout},
      [self = HeldByStore(shared_from_this())](const Answer& answer) { self->answered(answer); });
}

void Forget::leave(TimePoint deadline) noexcept {
  (void)engine_->release_and_wait(claim_, deadline);
}

void Forget::answered(const Answer& answer) {
  if (answer.verdict != Verdict::unknown) {
    engine_->keeper().cancel(*this);
    return;
  }
  if (answer.why) {
    engine_->observe({.event = Event::release_failed, .claim = claim_, .error = &*answer.why});
    if (!answer.why->retryable()) return engine_->keeper().cancel(*this);
  }
  engine_->keeper().schedule(shared_from_this(), engine_->now() + Retry::standard().delay(tries_));
}

}  // namespace interlock::core
