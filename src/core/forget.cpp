#include "core/forget.hpp"

#include <algorithm>

namespace interlock::core {

Forget::Forget(std::shared_ptr<Engine> engine, Claim claim, Done done)
    : engine_(std::move(engine)),
      claim_(std::move(claim)),
      done_(std::move(done)),
      // The last message of this owner may still be on its way.
      until_(engine_->now() + claim_.ttl + engine_->traits().call_timeout) {}

void Forget::start() { due(engine_->now()); }

void Forget::due(TimePoint now) {
  if (now >= until_) {
    return end(
        Answer::failed({Errc::unreachable,
                        "its release was never confirmed",
                        {.resource = {}, .node = engine_->traits().where, .maybe_held = true}}));
  }
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
  if (answer.verdict != Verdict::unknown) return end(answer);
  if (answer.why) {
    const auto named = std::find_if(claim_.parts.begin(), claim_.parts.end(),
                                    [](const Part& part) { return !part.ancestor; });
    engine_->observe({.event = Event::cleanup_failed,
                      .claim = claim_,
                      .resource = named == claim_.parts.end() ? "" : named->resource,
                      .error = &*answer.why});
    // Whoever waits for it is told. A store that refuses it may do so for a moment only: it goes on.
    if (!answer.why->retryable()) tell(answer);
  }
  engine_->keeper().schedule(shared_from_this(), engine_->now() + Retry::standard().delay(tries_));
}

void Forget::end(const Answer& answer) {
  engine_->keeper().cancel(*this);
  tell(answer);
}

void Forget::tell(const Answer& answer) {
  if (!told_.exchange(true) && done_) done_(answer);
}

}  // namespace interlock::core
