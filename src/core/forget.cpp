#include "core/forget.hpp"

#include <algorithm>

namespace interlock::core {

namespace {

Duration longest_ttl(const std::vector<Claim>& claims) {
  return std::max_element(claims.begin(), claims.end(),
                          [](const Claim& a, const Claim& b) { return a.ttl < b.ttl; })
      ->ttl;
}

// The answer for both.
Answer combined(const Answer& before, const Answer& now) {
  const auto decides = [](const Answer& answer) {
    return answer.verdict == Verdict::unknown ? 0 : answer.verdict == Verdict::granted ? 1 : 2;
  };
  return decides(before) < decides(now) ? before : now;
}

}  // namespace

Forget::Forget(std::shared_ptr<Engine> engine, std::vector<Claim> claims, Done done)
    : engine_(std::move(engine)),
      claims_(std::move(claims)),
      done_(std::move(done)),
      // The last message of this owner may still be on its way.
      until_(later(engine_->call_deadline(), longest_ttl(claims_))) {}

void Forget::prepare() {
  engine_->keeper().schedule(shared_from_this(), engine_->now() + std::chrono::milliseconds(100));
}

void Forget::start() { due(engine_->now()); }

void Forget::due(TimePoint now) {
  const auto which = [&] {
    const std::lock_guard lock(mutex_);
    return at_;
  }();
  if (which < claims_.size()) ask(which, now);
}

void Forget::ask(std::size_t which, TimePoint now) {
  if (now >= until_) {
    return end(which, Answer::failed(
                          {Errc::unreachable,
                           "its release was never confirmed",
                           {.resource = {}, .node = engine_->traits().where, .maybe_held = true}}));
  }
  int tries = 0;
  {
    const std::lock_guard lock(mutex_);
    if (which != at_) return;  // it has been answered meanwhile
    tries = ++tries_;
    ++maybe_done_;
  }
  // If no answer comes, this is when to ask again.
  engine_->keeper().schedule(shared_from_this(),
                             later(engine_->call_deadline(), Retry::standard().delay(tries)));
  engine_->backend().release(claims_[which], {.deadline = engine_->call_deadline()},
                             [self = HeldByStore(shared_from_this()), which](const Answer& answer) {
                               self->answered(which, answer);
                             });
}

void Forget::leave(TimePoint deadline) noexcept {
  for (const auto& claim : claims_) (void)engine_->release_and_wait(claim, deadline);
}

void Forget::answered(std::size_t which, const Answer& answer) {
  bool maybe_done_before = false;
  int tries = 0;
  {
    const std::lock_guard lock(mutex_);
    if (which != at_) return;  // a late copy of an answer
    tries = tries_;
    maybe_done_before = maybe_done_ > 1;
    if (answer.verdict == Verdict::unknown && answer.why && !answer.why->maybe_held())
      --maybe_done_;
  }
  if (answer.verdict == Verdict::lost && maybe_done_before) {
    // What it does not find any more, it has given back itself, and did not hear of it.
    return end(which, {.verdict = Verdict::granted});
  }
  if (answer.verdict != Verdict::unknown) return end(which, answer);
  if (answer.why) {
    const auto& claim = claims_[which];
    const auto named = std::find_if(claim.parts.begin(), claim.parts.end(),
                                    [](const Part& part) { return !part.ancestor; });
    engine_->observe({.event = Event::cleanup_failed,
                      .claim = claim,
                      .resource = named == claim.parts.end() ? "" : named->resource,
                      .error = &*answer.why});
    // Whoever waits for it is told. A store that refuses it may do so for a moment only: it goes on.
    if (!answer.why->retryable()) tell(answer);
  }
  engine_->keeper().schedule(shared_from_this(), engine_->now() + Retry::standard().delay(tries));
}

void Forget::end(std::size_t which, const Answer& answer) {
  Answer all;
  {
    const std::lock_guard lock(mutex_);
    if (which != at_) return;
    ++at_;
    maybe_done_ = 0;
    so_far_ = so_far_ ? combined(*so_far_, answer) : answer;
    all = *so_far_;
  }
  engine_->keeper().cancel(*this);
  if (which + 1 < claims_.size()) return ask(which + 1, engine_->now());
  tell(all);
}

void Forget::tell(const Answer& answer) {
  if (!told_.exchange(true) && done_) done_(answer);
}

}  // namespace interlock::core
