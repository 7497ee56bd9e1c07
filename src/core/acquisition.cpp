#include "core/acquisition.hpp"

#include <algorithm>

#include "interlock/duration.hpp"

namespace interlock::core {

namespace {

// Whoever allows less than this can't tell a store that is silent from one that is busy.
constexpr Duration kFairChance = std::chrono::milliseconds(250);

// Nobody asks more often than this, whatever the store suggests.
constexpr Duration kSoonest = std::chrono::milliseconds(1);

// Longer pauses are all alike.
constexpr Duration kLongestDelay = std::chrono::hours(24 * 365);

}  // namespace

Acquisition::Step Acquisition::start(TimePoint now) {
  started_ = now;
  return ask(now);
}

Acquisition::Step Acquisition::ask(TimePoint now) {
  phase_ = Phase::asking;
  woken_ = false;
  look_at_ = TimePoint::max();
  call_deadline_ =
      std::min(later(now, plan_.call_timeout), plan_.deadline.value_or(TimePoint::max()));
  ++attempts_;
  return {.ask = true, .call = attempts_, .call_deadline = call_deadline_};
}

Acquisition::Step Acquisition::reply(TimePoint now, int call, TimePoint sent, Answer answer) {
  const bool granted = answer.verdict == Verdict::granted;
  if (done()) {  // of any thread: this changes nothing
    // In doubt it may have been done only now, after the release that cleaned up.
    const bool in_doubt =
        answer.verdict == Verdict::unknown && answer.why && answer.why->maybe_held();
    const bool left_behind = granted || answer.verdict == Verdict::queued || in_doubt;
    return {.forget = left_behind && outcome_ != Outcome::granted};
  }
  reached_ = reached_ || !answer.unsent;
  // The store may still take back what a newer call was granted, and with it what this one was.
  if (call != attempts_) return {};
  if (granted && now < sent + plan_.ttl - plan_.drift) {
    fences_ = std::move(answer.fences);
    granted_sent_ = sent;
    return finish(Outcome::granted, false);
  }
  if (!in_flight()) return {};  // late
  call_deadline_ = TimePoint::max();
  if (answer.verdict != Verdict::unknown) {
    failures_ = 0;
    answered_ = true;
  }
  switch (answer.verdict) {
    case Verdict::granted:  // it took longer than the lease: start its TTL anew
      return ask(now);
    case Verdict::queued:
      place_ = answer.place;
      if (woken_) return ask(now);
      phase_ = Phase::waiting;
      look_at_ = later(
          now, std::max(kSoonest,
                        std::min(plan_.heartbeat, answer.look_again.value_or(plan_.heartbeat))));
      return {};
    case Verdict::busy:
      place_.reset();
      partly_ = partly_ || answer.partly;
      // It was allowed to queue, and the store says that waiting would never end.
      if (plan_.one_shot || queue()) return finish(Outcome::busy, false);
      if (plan_.tries) {
        if (attempts_ >= plan_.tries->attempts) return finish(Outcome::exhausted, false);
        return pause(now, *plan_.tries, attempts_);
      }
      return pause(now, plan_.retry, attempts_);
    case Verdict::lost:
      why_ = Error(Errc::lost, "it was taken away again before it was known to be granted");
      return finish(Outcome::failed, true);
    case Verdict::unknown:
      break;
  }
  if (answer.undone) ++undone_;
  Error why = answer.why.value_or(Error(Errc::unreachable, "the store gave no reason"));
  if (!why.retryable()) {
    why_ = std::move(why);
    return finish(Outcome::failed, true);
  }
  return no_answer(now, std::move(why));
}

bool Acquisition::nothing_wrong(TimePoint now) const noexcept {
  return failures_ == 0 && (answered_ || now - started_ < kFairChance);
}

Acquisition::Step Acquisition::no_answer(TimePoint now, Error why) {
  call_deadline_ = TimePoint::max();
  // The caller's own deadline cut the last call of a good wait short: that is not the store's fault.
  if (plan_.deadline && now >= *plan_.deadline && nothing_wrong(now)) {
    return finish(Outcome::timed_out, true);
  }
  why_ = std::move(why);
  ++failures_;
  if (plan_.one_shot || std::max(failures_, undone_) >= plan_.retry.attempts)
    return finish(Outcome::failed, true);
  return pause(now, plan_.retry, failures_);
}

Acquisition::Step Acquisition::pause(TimePoint now, const Retry& policy, int failed) {
  phase_ = Phase::pausing;
  std::uniform_real_distribution<double> shorter(1.0 - std::clamp(policy.jitter, 0.0, 1.0), 1.0);
  const auto longest = std::min<Duration>(policy.delay(failed), kLongestDelay);
  const auto delay = static_cast<double>(longest.count()) * shorter(random_);
  look_at_ = later(now, std::max(kSoonest, Duration(static_cast<Duration::rep>(delay))));
  return {};
}

Acquisition::Step Acquisition::wake(TimePoint now) {
  if (done() || phase_ == Phase::idle) return {};
  if (in_flight()) {
    woken_ = true;
    return {};
  }
  return ask(now);
}

Acquisition::Step Acquisition::tick(TimePoint now) {
  if (done() || phase_ == Phase::idle) return {};
  if (plan_.deadline && now >= *plan_.deadline) {
    // Out of time because it was taken, or because nobody answers: not the same thing.
    if (nothing_wrong(now)) return finish(Outcome::timed_out, true);
    if (failures_ == 0) {
      why_ = Error(Errc::unreachable, "no answer within " + format_duration(now - started_),
                   {.resource = {}, .node = {}, .maybe_held = true});
    }
    return finish(Outcome::failed, true);
  }
  if (in_flight() && now >= call_deadline_) {
    reached_ = true;
    return no_answer(
        now, Error(Errc::unreachable, "no answer within " + format_duration(plan_.call_timeout),
                   {.resource = {}, .node = {}, .maybe_held = true}));
  }
  if (now >= look_at_) return ask(now);
  return {};
}

Acquisition::Step Acquisition::cancel(TimePoint) {
  if (done()) return {};
  return finish(Outcome::cancelled, phase_ != Phase::idle);
}

Acquisition::Step Acquisition::fail(Error why) {
  if (done()) return {};
  why_ = std::move(why);
  return finish(Outcome::failed, true);
}

Acquisition::Step Acquisition::finish(Outcome outcome, bool forget) {
  reached_ = reached_ || in_flight();
  phase_ = Phase::done;
  outcome_ = outcome;
  call_deadline_ = TimePoint::max();
  look_at_ = TimePoint::max();
  return {.forget = forget && reached_};
}

TimePoint Acquisition::next_tick() const noexcept {
  if (done()) return TimePoint::max();
  return std::min({look_at_, call_deadline_, plan_.deadline.value_or(TimePoint::max())});
}

}  // namespace interlock::core
