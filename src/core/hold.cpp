#include "core/hold.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/pursuit.hpp"
#include "core/token.hpp"

namespace interlock::core {

namespace {

std::string why_of(const Answer& answer) { return answer.why ? answer.why->message() : ""; }

constexpr Duration kFirstPause = std::chrono::milliseconds(20);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);

bool failed_for_now(const Answer& answer) {
  return answer.verdict == Verdict::unknown && answer.why->retryable();
}

}  // namespace

Hold::Hold(std::shared_ptr<Engine> engine, std::shared_ptr<const Template> what, Grant grant)
    : engine_(std::move(engine)),
      what_(std::move(what)),
      acquired_(grant.at),
      waited_(grant.waited),
      attempts_(grant.attempts),
      claim_(std::move(grant.claim)),
      fences_(std::move(grant.fences)),
      machine_(
          {.ttl = claim_.ttl,
           .drift = [traits = &engine_->traits(), margin = what_->options.margin](
                        Duration ttl) { return traits->drift(ttl) + std::min(margin, ttl / 3); },
           .renew = what_->options.renew,
           .max_hold = what_->options.max_hold,
           .call_timeout = engine_->traits().call_timeout},
          grant.sent, acquired_) {}

void Hold::begin() {
  const std::lock_guard lock(mutex_);
  engine_->keeper().schedule(shared_from_this(), machine_.next_tick());
}

std::chrono::system_clock::time_point Hold::acquired_at() const noexcept {
  const auto age = engine_->now() - acquired_;
  return std::chrono::system_clock::now() -
         std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
}

std::vector<std::string> Hold::resources() const {
  std::vector<std::string> names;
  for (const auto& part : claim_.parts) {
    if (!part.ancestor) names.push_back(part.resource);
  }
  return names;
}

Fence Hold::fence(std::string_view resource) const {
  const std::lock_guard lock(mutex_);
  if (!engine_->traits().fences || fences_.size() != claim_.parts.size()) {
    throw Error(
        Errc::unsupported, "this store has no fences",
        {.resource = std::string(resource), .node = engine_->traits().where, .maybe_held = false});
  }
  return fences_[static_cast<std::size_t>(&part(resource) - claim_.parts.data())];
}

const Part& Hold::part(std::string_view resource) const {
  if (const Part* found = claim_.find(resource)) return *found;
  throw Error(Errc::invalid, "this lease does not hold it",
              {.resource = std::string(resource), .node = {}, .maybe_held = false});
}

TimePoint Hold::valid_until() const {
  const std::lock_guard lock(mutex_);
  return machine_.valid_until();
}

Duration Hold::time_remaining() const {
  if (engine_->forked()) return Duration::zero();
  const std::lock_guard lock(mutex_);
  const auto now = engine_->now();
  if (machine_.state(now) != LeaseState::held) return Duration::zero();
  return machine_.valid_until() - now;
}

LeaseState Hold::state() const noexcept {
  if (engine_->forked()) return LeaseState::lost;
  const std::lock_guard lock(mutex_);
  return machine_.state(engine_->now());
}

std::stop_token Hold::lost() {
  const std::lock_guard lock(mutex_);
  if (!lost_.stop_possible()) {
    lost_ = std::stop_source();
    // It was lost before anybody asked: nobody can have a callback on it yet.
    if (machine_.state(engine_->now()) == LeaseState::lost) lost_.request_stop();
  }
  return lost_.get_token();
}

std::string Hold::lost_reason() const {
  if (engine_->forked()) return "it is held by the parent of this forked process";
  const std::lock_guard lock(mutex_);
  if (machine_.state(engine_->now()) != LeaseState::lost) return "";
  return machine_.reason().empty() ? "it could not be renewed in time" : machine_.reason();
}

void Hold::due(TimePoint now) {
  std::unique_lock lock(mutex_);
  const auto step = machine_.tick(now);
  if (step.renew && renewals_answered_ < renewals_sent_) {
    const Error why(Errc::unreachable, "there is no answer to its renewal yet; asking again",
                    {.resource = resource(), .node = engine_->traits().where, .maybe_held = true});
    tell_renewed(claim_, now, {.verdict = Verdict::unknown, .why = why});
  }
  perform(step, lock);
}

void Hold::wake(const Owner& owner) {
  std::unique_lock lock(mutex_);
  if (owner != claim_.owner || released_ || changing_) return;
  perform(machine_.hurry(engine_->now()), lock);
}

// Leaves the lock unlocked.
void Hold::perform(const LeaseMachine::Step& step, std::unique_lock<std::mutex>& lock) {
  if (released_) return lock.unlock();
  engine_->keeper().schedule(shared_from_this(), machine_.next_tick());
  if (step.renew) return send_renewal(step.call_deadline, lock);
  if (!step.lose) return lock.unlock();
  if (step.forget) engine_->forget(claim_);
  tell_lost(lock);
}

// Leaves the lock unlocked.
void Hold::tell_lost(std::unique_lock<std::mutex>& lock) {
  auto signal = lost_;
  const auto claim = claim_;
  const auto why = lost_error();
  lock.unlock();
  signal.request_stop();
  observe(Event::lost, claim, engine_->now() - acquired_, &why);
}

void Hold::observe(Event event, const Claim& claim, Duration elapsed, const Error* error) {
  engine_->observe(
      {.event = event, .claim = claim, .resource = resource(), .elapsed = elapsed, .error = error});
}

void Hold::tell_renewed(const Claim& claim, TimePoint now, const Answer& answer) {
  if (released_ || machine_.state(now) != LeaseState::held) return;  // it came too late to matter
  const auto left = machine_.valid_until() - now;
  if (answer.verdict == Verdict::granted) {
    observe(Event::renewed, claim, left);
  } else if (answer.verdict == Verdict::unknown) {
    observe(Event::renewal_failed, claim, left, answer.why ? &*answer.why : nullptr);
  }
}

void Hold::send_renewal(TimePoint deadline, std::unique_lock<std::mutex>& lock) {
  const auto claim = claim_;
  const auto generation = generation_;
  const auto number = ++renewals_sent_;
  lock.unlock();
  const auto sent = engine_->now();
  engine_->backend().renew(
      claim, {.deadline = deadline},
      [self = HeldByStore(shared_from_this()), claim, generation, number,
       sent](const Answer& answer) {
        self->engine_->note(claim, answer);
        std::unique_lock relock(self->mutex_);
        self->renewals_answered_ = std::max(self->renewals_answered_, number);
        if (self->generation_ != generation || (self->changing_ && answer.verdict == Verdict::lost))
          return;
        // The release overtook it, and says how the lease ended.
        if (self->released_) return;
        const auto now = self->engine_->now();
        const auto step =
            self->machine_.renewed(now, sent, claim.ttl, answer.verdict, why_of(answer));
        // That there was no answer was told when it was asked again.
        if (answer.verdict == Verdict::granted || number == self->renewals_sent_)
          self->tell_renewed(claim, now, answer);
        self->perform(step, relock);
      });
}

bool Hold::extend(Duration ttl) {
  engine_->check_not_forked();
  check_ttl(ttl, resource());
  std::unique_lock lock(mutex_);
  const auto now = engine_->now();
  if (released_ || machine_.state(now) != LeaseState::held) return false;
  machine_.set_ttl(ttl);
  claim_.ttl = ttl;
  return renew_now(now, lock);
}

bool Hold::tie_to(std::optional<std::int64_t> process) {
  engine_->check_not_forked();
  std::unique_lock lock(mutex_);
  const auto now = engine_->now();
  if (released_ || machine_.state(now) != LeaseState::held) return false;
  auto who = *claim_.who;
  if (process) who.pid = *process;
  who.tied = process.has_value();
  claim_.who = std::make_shared<const Who>(std::move(who));
  return renew_now(now, lock);
}

// With the claim as it is now, and waits for the answer. Leaves the lock unlocked.
bool Hold::renew_now(TimePoint sent, std::unique_lock<std::mutex>& lock) {
  const auto generation = ++generation_;  // renewals under way are of an earlier claim
  const auto deadline = std::min(machine_.valid_until(), sent + engine_->traits().call_timeout);
  lock.unlock();
  const auto answer = engine_->renew_and_wait(claim_, deadline);
  lock.lock();
  if (generation_ == generation) {
    const auto now = engine_->now();
    const auto step = machine_.renewed(now, sent, claim_.ttl, answer.verdict, why_of(answer));
    tell_renewed(claim_, now, answer);
    perform(step, lock);
  } else {
    lock.unlock();
  }
  if (answer.verdict == Verdict::unknown) throw answer.why->about(resource());
  return state() == LeaseState::held;
}

// From here on the claim does not change any more: it is safe to read without the lock.
std::optional<LeaseState> Hold::begin_release(TimePoint now) {
  engine_->check_not_forked();
  {
    std::unique_lock lock(mutex_);
    if (released_) return machine_.state(now);
    const auto step = machine_.tick(now);
    if (step.lose) {  // it ended just now, and nobody has said so yet
      perform(step, lock);
      lock.lock();
    }
    released_ = true;
  }
  engine_->keeper().cancel(*this);
  return std::nullopt;
}

LeaseState Hold::end_release(TimePoint began, const Answer& answer) {
  std::unique_lock lock(mutex_);
  const bool was_held = machine_.state(began) == LeaseState::held;
  if (answer.verdict == Verdict::granted) {
    machine_.end(LeaseState::released);
    if (!was_held) return LeaseState::lost;
    lock.unlock();
    observe(Event::released, claim_, began - acquired_);
    return LeaseState::released;
  }
  if (was_held) {
    const bool in_doubt = answer.verdict == Verdict::unknown;
    machine_.end(LeaseState::lost, in_doubt ? "its release could not be confirmed"
                                            : "it was not held any more when it was released");
    if (!in_doubt) {
      tell_lost(lock);
    } else {
      lock.unlock();
      observe(Event::release_failed, claim_, began - acquired_,
              answer.why ? &*answer.why : nullptr);
    }
  }
  return LeaseState::lost;
}

LeaseState Hold::release(Duration timeout, bool again) {
  const auto now = engine_->now();
  if (const auto over = begin_release(now)) return *over;
  const auto deadline = now + timeout;
  auto answer = engine_->release_and_wait(claim_, deadline);
  // A failover takes a few seconds; without a release, the next one would wait for the TTL.
  for (auto pause = kFirstPause;
       again && failed_for_now(answer) && engine_->now() + pause < deadline;
       pause = std::min(2 * pause, kLongestPause)) {
    Signal(*engine_->clock()).wait_until(engine_->now() + pause);
    answer = engine_->release_and_wait(claim_, deadline);
  }
  const auto state = end_release(now, answer);
  if (answer.verdict != Verdict::unknown) return state;
  engine_->forget(claim_);
  throw Error(answer.why->errc(), answer.why->message(),
              {.resource = resource(), .node = answer.why->node(), .maybe_held = true});
}

void Hold::async_release(std::function<void(LeaseState)> then) {
  const auto now = engine_->now();
  if (const auto over = begin_release(now)) {
    return engine_->deliver([then = std::move(then), state = *over] { then(state); });
  }
  engine_->forget(claim_,
                  [self = shared_from_this(), then = std::move(then), now](const Answer& answer) {
                    const auto state = self->end_release(now, answer);
                    self->engine_->deliver([then, state] { then(state); });
                  });
}

LeaseState Hold::release(const std::vector<std::string>& names) {
  engine_->check_not_forked();
  const auto named = [&](const Part& part) {
    return std::find(names.begin(), names.end(), part.resource) != names.end();
  };
  std::vector<Part> kept;
  for (const auto& part : claim_.parts) {
    if (!part.ancestor && !named(part)) kept.push_back(part);
  }
  if (kept.empty()) return release();
  normalize(kept, what_->options.hierarchy);
  Claim given = claim_;
  std::erase_if(given.parts, [&](const Part& part) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const Part& k) { return k.resource == part.resource; });
  });
  if (given.parts.empty()) return state();
  {
    // First here, then in the store: a renewal must not ask for what is being given back.
    const std::lock_guard lock(mutex_);
    std::vector<Fence> fences;
    for (std::size_t i = 0; i < fences_.size(); ++i) {
      const bool stays = std::any_of(kept.begin(), kept.end(), [&](const Part& k) {
        return k.resource == claim_.parts[i].resource;
      });
      if (stays) fences.push_back(fences_[i]);
    }
    claim_.parts = std::move(kept);
    fences_ = std::move(fences);
    ++generation_;
  }
  const auto deadline = engine_->now() + engine_->traits().call_timeout;
  auto answer = engine_->release_and_wait(given, deadline);
  if (answer.verdict == Verdict::unknown) {
    engine_->forget(given);
    throw answer.why->about(given.parts.front().resource);
  }
  return answer.verdict == Verdict::granted ? LeaseState::released : LeaseState::lost;
}

bool Hold::change(Mode from, Mode to, const Wait& wait) {
  engine_->check_not_forked();
  Claim next = claim_;
  bool differs = false;
  for (auto& part : next.parts) {
    if (part.ancestor || part.mode != from) continue;
    part.mode = to;
    differs = true;
  }
  if (!differs) return state() == LeaseState::held;
  next.instead_of = std::exchange(next.owner, Owner::random());
  // Another thread waits than the one that acquired it, and may hold what nobody knows of.
  if (next.who->actor != engine_->caller(*what_)->actor) {
    auto who = *next.who;
    who.actor.clear();
    next.who = std::make_shared<const Who>(std::move(who));
  }
  {
    const std::lock_guard lock(mutex_);
    if (released_ || machine_.state(engine_->now()) != LeaseState::held) return false;
    changing_ = true;
  }
  const auto pursuit = std::make_shared<Pursuit>(engine_, what_, std::move(next), wait);
  pursuit->run();
  const auto& result = pursuit->result();

  std::unique_lock lock(mutex_);
  changing_ = false;
  const auto now = engine_->now();
  if (result.outcome() == Outcome::granted) {
    if (machine_.state(now) != LeaseState::held) {  // too late: there is no way back
      lock.unlock();
      engine_->forget(pursuit->claim());
      return false;
    }
    claim_ = std::move(pursuit->claim());
    claim_.instead_of = {};
    fences_ = result.fences();
    ++generation_;
    perform(machine_.renewed(now, result.sent(), claim_.ttl, Verdict::granted), lock);
    return true;
  }
  if (result.outcome() == Outcome::failed) {
    const auto error = pursuit->error();
    if (error.errc() == Errc::lost) {
      perform(machine_.taken(now), lock);
      return false;
    }
    lock.unlock();
    throw Error(error);
  }
  return false;
}

std::string Hold::token() const { return make_token(claim_, resource()); }

std::string Hold::detach() {
  engine_->check_not_forked();
  if (!engine_->traits().detaches) {
    throw Error(
        Errc::unsupported,
        "a lease ends with its connection here, so there is nothing to hand on: it is held as "
        "before; keep it until the work is done, or take a store that can detach",
        {.resource = resource(), .node = engine_->traits().where, .maybe_held = false});
  }
  Claim claim = claim_;
  if (claim.who->pid == getpid()) {
    auto nobody = *claim.who;
    nobody.pid = 0;
    claim.who = std::make_shared<const Who>(std::move(nobody));
  }
  TimePoint deadline;
  {
    const std::lock_guard lock(mutex_);
    const auto now = engine_->now();
    if (released_ || machine_.state(now) != LeaseState::held) throw lost_error();
    // A renewal by this process would tie it to the process again.
    machine_.stop_renewing();
    ++generation_;
    deadline = std::min(machine_.valid_until(), now + engine_->traits().call_timeout);
  }
  const auto answer = engine_->renew_and_wait(claim, deadline);
  std::unique_lock lock(mutex_);
  if (answer.verdict == Verdict::lost) {
    perform(machine_.taken(engine_->now()), lock);
    throw lost_error();
  }
  if (answer.verdict == Verdict::unknown) throw answer.why->about(resource());
  released_ = true;
  machine_.end(LeaseState::released);
  lock.unlock();
  engine_->keeper().cancel(*this);
  observe(Event::detached, claim_, engine_->now() - acquired_);
  return token();
}

Error Hold::lost_error() const {
  const auto& reason = machine_.reason();
  return {Errc::lost,
          reason.empty() ? "the lease has ended" : reason,
          {.resource = resource(), .node = engine_->traits().where, .maybe_held = false}};
}

void Hold::drop(Duration timeout) noexcept {
  if (engine_->forked()) return;
  try {
    release(timeout, false);
  } catch (const Error&) {  // the observer knows: see end_release
  } catch (const std::exception& error) {
    const Error wrapped(Errc::refused, error.what(),
                        {.resource = resource(), .node = {}, .maybe_held = true});
    observe(Event::release_failed, claim_, engine_->now() - acquired_, &wrapped);
  }
}

void Hold::leave(TimePoint deadline) noexcept { drop(deadline - engine_->now()); }

}  // namespace interlock::core
