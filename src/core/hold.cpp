#include "core/hold.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/contain.hpp"
#include "core/forget.hpp"
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

// How soon to ask again what the store has, if no answer comes.
Duration question_pause(Duration ttl) {
  return std::clamp<Duration>(ttl / 12, kFirstPause, std::chrono::seconds(1));
}

}  // namespace

Hold::Hold(std::shared_ptr<Engine> engine, std::shared_ptr<const Template> what, Grant grant)
    : engine_(std::move(engine)),
      what_(std::move(what)),
      acquired_(grant.at),
      waited_(grant.waited),
      attempts_(grant.attempts),
      held_(std::move(grant.claim)),
      fences_(std::move(grant.fences)),
      machine_(
          {.ttl = held_.claim().ttl,
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

Claim Hold::claim() const {
  const std::lock_guard lock(mutex_);
  return held_.claim();
}

Mode Hold::mode(std::string_view resource) const {
  const std::lock_guard lock(mutex_);
  return held_.mode(part(resource));
}

std::vector<std::string> Hold::resources() const {
  std::vector<std::string> names;
  for (const auto& part : claim().parts) {
    if (!part.ancestor) names.push_back(part.resource);
  }
  return names;
}

Fence Hold::fence(std::string_view resource) const {
  const std::lock_guard lock(mutex_);
  if (!engine_->traits().fences || fences_.size() != held_.claim().parts.size()) {
    throw Error(
        Errc::unsupported, "this store has no fences",
        {.resource = std::string(resource), .node = engine_->traits().where, .maybe_held = false});
  }
  return fences_[static_cast<std::size_t>(&part(resource) - held_.claim().parts.data())];
}

const Part& Hold::part(std::string_view resource) const {
  if (const Part* found = held_.claim().find(resource)) return *found;
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
  auto step = machine_.tick(now);
  // Also without renewal, and before the next one is due.
  if (!step.lose && held_.phase() == Succession::Phase::settling) step = machine_.hurry(now);
  if (step.renew && renewals_answered_ < renewals_sent_) {
    const Error why(Errc::unreachable, "there is no answer to its renewal yet; asking again",
                    {.resource = resource(), .node = engine_->traits().where, .maybe_held = true});
    tell_renewed(held_.claim(), now, {.verdict = Verdict::unknown, .why = why});
  }
  perform(step, lock);
}

void Hold::wake(const Owner& owner) {
  std::unique_lock lock(mutex_);
  const bool ours =
      owner == held_.claim().owner || (held_.successor() && owner == held_.successor()->owner);
  // While it asks, the question says what became of the hold.
  if (!ours || released_ || held_.phase() == Succession::Phase::asking) return;
  perform(machine_.hurry(engine_->now()), lock);
}

// Leaves the lock unlocked.
void Hold::perform(const LeaseMachine::Step& step, std::unique_lock<std::mutex>& lock) {
  if (released_) return lock.unlock();
  if (step.lose) {
    engine_->keeper().cancel(*this);
    return end_lost(step, lock);
  }
  const bool settling = held_.phase() == Succession::Phase::settling;
  auto next = machine_.next_tick();
  if (settling) next = std::min(next, engine_->now() + question_pause(machine_.ttl()));
  engine_->keeper().schedule(shared_from_this(), next);
  if (step.renew) {
    return settling ? send_question(step.call_deadline, lock)
                    : send_renewal(step.call_deadline, lock);
  }
  lock.unlock();
}

// Leaves the lock unlocked.
void Hold::end_lost(const LeaseMachine::Step& step, std::unique_lock<std::mutex>& lock) {
  tell_lost(lock);
  lock.lock();
  // A successor may have been granted late, and then its time has not ended with the claim's.
  const auto left = step.forget || held_.successor() ? claims_in_store() : std::vector<Claim>();
  lock.unlock();
  // Without the lock: a store that answers at once wakes others from within this call, and may wake this hold.
  if (!left.empty()) engine_->forget(left);
}

// Leaves the lock unlocked. The user first: it comes only once, and there may be no memory for the rest.
void Hold::tell_lost(std::unique_lock<std::mutex>& lock) {
  const auto signal = lost_;
  lock.unlock();
  engine_->tell_lost(signal);
  lock.lock();
  const auto claim = held_.claim();
  const auto why = lost_error();
  lock.unlock();
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
  const auto claim = held_.claim();
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
        // Or the release overtook it, and says how the lease ended.
        if (self->generation_ != generation || self->released_) return;
        const auto now = self->engine_->now();
        if (answer.verdict == Verdict::lost && self->held_.doubt()) {
          const bool asking = self->held_.phase() == Succession::Phase::asking;
          return asking ? relock.unlock() : self->perform(self->machine_.hurry(now), relock);
        }
        const auto step =
            self->machine_.renewed(now, sent, claim.ttl, answer.verdict, why_of(answer));
        // That there was no answer was told when it was asked again.
        if (answer.verdict == Verdict::granted || number == self->renewals_sent_)
          self->tell_renewed(claim, now, answer);
        self->perform(step, relock);
      });
}

// Leaves the lock unlocked.
void Hold::send_question(TimePoint deadline, std::unique_lock<std::mutex>& lock) {
  const auto asked = *held_.successor();
  const auto number = ++renewals_sent_;
  lock.unlock();
  const auto sent = engine_->now();
  engine_->backend().acquire(
      asked, false, {.deadline = deadline},
      [self = HeldByStore(shared_from_this()), asked, number, sent](const Answer& answer) {
        self->engine_->note(asked, answer);
        std::unique_lock relock(self->mutex_);
        self->renewals_answered_ = std::max(self->renewals_answered_, number);
        self->take_answer(asked, sent, answer, true, relock);
      });
}

void Hold::take_answer(const Claim& asked, TimePoint sent, const Answer& answer, bool ask_on,
                       std::unique_lock<std::mutex>& lock) {
  if (released_) return lock.unlock();
  const auto now = engine_->now();
  const auto found = held_.answered(asked.owner, answer.verdict);
  if (found == Succession::Found::lost) return perform(machine_.taken(now, why_of(answer)), lock);
  if (found == Succession::Found::nothing) {
    tell_renewed(asked, now, answer);
    return perform({}, lock);
  }
  fences_ = answer.fences;
  ++generation_;
  auto step = machine_.renewed(now, sent, asked.ttl, Verdict::granted);
  if (ask_on && !step.lose && held_.phase() == Succession::Phase::settling)
    step = machine_.hurry(now);
  perform(step, lock);
}

void Hold::settle() {
  const auto deadline = engine_->call_deadline();
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::unique_lock lock(mutex_);
    const auto now = engine_->now();
    if (released_ || held_.phase() != Succession::Phase::settling) return;
    if (machine_.state(now) != LeaseState::held) return;
    const auto asked = *held_.successor();
    const auto until = std::min(machine_.valid_until(), deadline);
    lock.unlock();
    const auto answer = engine_->acquire_and_wait(asked, until);
    lock.lock();
    const auto open = held_.successor() ? held_.successor()->owner : Owner{};
    take_answer(asked, now, answer, false, lock);
    if (open != asked.owner || answer.verdict == Verdict::granted ||
        answer.verdict == Verdict::lost) {
      pause = kFirstPause / 2;
      continue;
    }
    const bool hopeless = answer.verdict == Verdict::unknown && !answer.why->retryable();
    if (hopeless || engine_->now() + pause >= until) {
      throw Error(Errc::unreachable,
                  "the store has not said yet whether its modes have changed: it is held as it was "
                  "or changed, and asked for in the background; ask mode() later" +
                      (answer.why ? "; " + answer.why->message() : ""),
                  {.resource = resource(), .node = engine_->traits().where, .maybe_held = true});
    }
    Signal(*engine_->clock()).wait_until(engine_->now() + pause);
  }
}

bool Hold::extend(Duration ttl) {
  engine_->check_not_forked();
  check_ttl(ttl, resource());
  settle();
  std::unique_lock lock(mutex_);
  const auto now = engine_->now();
  if (released_ || machine_.state(now) != LeaseState::held) return false;
  machine_.set_ttl(ttl);
  held_.edit().ttl = ttl;
  return renew_now(now, lock);
}

bool Hold::tie_to(std::optional<std::int64_t> process) {
  engine_->check_not_forked();
  settle();
  std::unique_lock lock(mutex_);
  const auto now = engine_->now();
  if (released_ || machine_.state(now) != LeaseState::held) return false;
  auto who = *held_.claim().who;
  if (process) who.pid = *process;
  who.tied = process.has_value();
  held_.edit().who = std::make_shared<const Who>(std::move(who));
  return renew_now(now, lock);
}

// With the claim as it is now, and waits for the answer. Leaves the lock unlocked.
bool Hold::renew_now(TimePoint sent, std::unique_lock<std::mutex>& lock) {
  const auto generation = ++generation_;  // renewals under way are of an earlier claim
  const auto deadline = std::min(machine_.valid_until(), engine_->call_deadline());
  const auto claim = held_.claim();
  lock.unlock();
  const auto answer = engine_->renew_and_wait(claim, deadline);
  lock.lock();
  if (answer.verdict == Verdict::lost && generation_ == generation && held_.doubt()) {
    lock.unlock();
    settle();
  } else if (generation_ == generation) {
    const auto now = engine_->now();
    const auto step = machine_.renewed(now, sent, claim.ttl, answer.verdict, why_of(answer));
    tell_renewed(claim, now, answer);
    perform(step, lock);
  } else {
    lock.unlock();
  }
  if (answer.verdict == Verdict::unknown) throw answer.why->about(resource());
  return state() == LeaseState::held;
}

// From here on what is held does not change any more: it is safe to read without the lock.
std::optional<LeaseState> Hold::begin_release(TimePoint now, const std::function<void()>& prepare) {
  engine_->check_not_forked();
  {
    std::unique_lock lock(mutex_);
    if (released_) return machine_.state(now);
    const auto step = machine_.tick(now);
    if (step.lose) {  // it ended just now, and nobody has said so yet
      perform(step, lock);
      lock.lock();
    }
    if (prepare) prepare();
    released_ = true;
  }
  engine_->keeper().cancel(*this);
  return std::nullopt;
}

// Each in turn: a late copy of the question finds nothing to take over from once the claim has gone.
Answer Hold::give_back(TimePoint deadline) {
  auto answer = engine_->release_and_wait(held_.claim(), deadline);
  if (!held_.successor() || answer.verdict == Verdict::unknown) return answer;
  const bool was_refused = held_.phase() == Succession::Phase::settled;
  if (was_refused && answer.verdict == Verdict::granted) return answer;
  auto other = engine_->release_and_wait(*held_.successor(), deadline);
  return answer.verdict == Verdict::granted && other.verdict != Verdict::unknown ? answer : other;
}

std::vector<Claim> Hold::claims_in_store() const {
  std::vector<Claim> claims{held_.claim()};
  if (held_.successor()) claims.push_back(*held_.successor());
  return claims;
}

void Hold::forget() { engine_->forget(claims_in_store()); }

LeaseState Hold::end_release(TimePoint began, const Answer& answer) {
  std::unique_lock lock(mutex_);
  const bool was_held = machine_.state(began) == LeaseState::held;
  if (answer.verdict == Verdict::granted) {
    machine_.end(LeaseState::released);
    if (!was_held) return LeaseState::lost;
    lock.unlock();
    observe(Event::released, held_.claim(), began - acquired_);
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
      observe(Event::release_failed, held_.claim(), began - acquired_,
              answer.why ? &*answer.why : nullptr);
    }
  }
  return LeaseState::lost;
}

LeaseState Hold::release(Duration timeout, bool again) {
  const auto now = engine_->now();
  if (const auto over = begin_release(now)) return *over;
  const auto deadline = later(now, timeout);
  const auto ask = [&] {
    try {
      return give_back(deadline);
    } catch (const std::exception& error) {
      (void)contain([this] { forget(); });
      (void)contain([&] {
        (void)end_release(
            now,
            Answer::failed(
                {Errc::refused,
                 error.what(),
                 {.resource = resource(), .node = engine_->traits().where, .maybe_held = true}}));
      });
      throw;
    }
  };
  auto answer = ask();
  bool maybe_done = false;
  // A failover takes a few seconds; without a release, the next one would wait for the TTL.
  for (auto pause = kFirstPause;
       again && failed_for_now(answer) && engine_->now() + pause < deadline;
       pause = std::min(2 * pause, kLongestPause)) {
    maybe_done = maybe_done || answer.why->maybe_held();
    Signal(*engine_->clock()).wait_until(engine_->now() + pause);
    answer = ask();
  }
  // What it does not find any more, it has given back itself, and did not hear of it.
  if (maybe_done && answer.verdict == Verdict::lost) answer = {.verdict = Verdict::granted};
  const auto state = end_release(now, answer);
  if (answer.verdict != Verdict::unknown) return state;
  forget();
  throw Error(answer.why->errc(), answer.why->message(),
              {.resource = resource(), .node = answer.why->node(), .maybe_held = true});
}

void Hold::async_release(std::function<void(LeaseState)> then) {
  engine_->check_not_forked();
  engine_->start_threads(resource(), true);
  const auto now = engine_->now();
  std::shared_ptr<Forget> release;
  const auto prepare = [&] {
    release = std::make_shared<Forget>(
        engine_, claims_in_store(), [self = shared_from_this(), then, now](const Answer& answer) {
          const auto state = self->end_release(now, answer);
          self->engine_->deliver([then, state] { then(state); });
        });
    release->prepare();
  };
  if (const auto over = begin_release(now, prepare)) {
    return engine_->deliver([then = std::move(then), state = *over] { then(state); });
  }
  // If there is no memory for it just now, the keeper comes again.
  if (!contain([&] { release->start(); })) (void)contain([&] { release->prepare(); });
}

LeaseState Hold::release(const std::vector<std::string>& names) {
  engine_->check_not_forked();
  settle();
  Claim given = claim();
  const auto named = [&](const Part& part) {
    return std::find(names.begin(), names.end(), part.resource) != names.end();
  };
  std::vector<Part> kept;
  for (const auto& part : given.parts) {
    if (!part.ancestor && !named(part)) kept.push_back(part);
  }
  if (kept.empty()) return release();
  normalize(kept, what_->options.hierarchy);
  std::erase_if(given.parts, [&](const Part& part) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const Part& k) { return k.resource == part.resource; });
  });
  if (given.parts.empty()) return state();
  {
    // First here, then in the store: a renewal must not ask for what is being given back.
    const std::lock_guard lock(mutex_);
    if (released_) return machine_.state(engine_->now());
    std::vector<Fence> fences;
    for (std::size_t i = 0; i < fences_.size(); ++i) {
      const bool stays = std::any_of(kept.begin(), kept.end(), [&](const Part& k) {
        return k.resource == held_.claim().parts[i].resource;
      });
      if (stays) fences.push_back(fences_[i]);
    }
    held_.edit().parts = std::move(kept);
    fences_ = std::move(fences);
    ++generation_;
  }
  const auto deadline = engine_->call_deadline();
  auto answer = engine_->release_and_wait(given, deadline);
  if (answer.verdict == Verdict::unknown) {
    engine_->forget({given});
    throw answer.why->about(given.parts.front().resource);
  }
  return answer.verdict == Verdict::granted ? LeaseState::released : LeaseState::lost;
}

bool Hold::change(Mode from, Mode to, const Wait& wait) {
  engine_->check_not_forked();
  settle();
  Claim next = claim();
  bool differs = false;
  for (auto& part : next.parts) {
    if (part.ancestor || part.mode != from) continue;
    part.mode = to;
    differs = true;
  }
  if (!differs) return state() == LeaseState::held;
  // Another thread waits than the one that acquired it, and may hold what nobody knows of.
  if (next.who->actor != engine_->caller(*what_)->actor) {
    auto who = *next.who;
    who.actor.clear();
    next.who = std::make_shared<const Who>(std::move(who));
  }
  const auto wanted = next.parts;
  {
    const std::lock_guard lock(mutex_);
    const auto now = engine_->now();
    if (released_ || machine_.state(now) != LeaseState::held) return false;
    const auto left = machine_.valid_until() - now;
    held_.begin(std::move(next), left + 2 * engine_->traits().drift(left));
  }
  std::shared_ptr<Pursuit> pursuit;
  std::optional<Error> why;  // if it failed
  try {
    {
      const std::lock_guard lock(mutex_);
      next = *held_.successor();
    }
    pursuit = std::make_shared<Pursuit>(engine_, what_, std::move(next), wait);
    pursuit->run();
    if (pursuit->result().outcome() == Outcome::failed) why = pursuit->error();
  } catch (...) {
    if (pursuit) pursuit->abandon();
    doubt_change();
    throw;
  }
  const auto& result = pursuit->result();

  std::unique_lock lock(mutex_);
  const auto now = engine_->now();
  if (released_ || machine_.state(now) != LeaseState::held) return false;  // there is no way back
  if (result.outcome() == Outcome::granted) {
    held_.granted();
    fences_ = result.fences();
    ++generation_;
    perform(machine_.renewed(now, result.sent(), pursuit->claim().ttl, Verdict::granted), lock);
    return true;
  }
  if (why && why->errc() == Errc::lost) {
    perform(machine_.taken(now), lock);
    return false;
  }
  if (result.refused_for_certain()) {
    held_.refused();
    return false;
  }
  held_.give_up();
  perform({}, lock);
  settle();
  lock.lock();
  if (machine_.state(engine_->now()) != LeaseState::held) return false;
  if (held_.claim().parts == wanted) return true;
  if (why) throw Error(*why);
  return false;
}

// It ended with an exception, memory mostly. The store may have done it all the same: the background finds out.
void Hold::doubt_change() {
  std::unique_lock lock(mutex_);
  if (released_ || machine_.state(engine_->now()) != LeaseState::held) return;
  held_.give_up();
  perform({}, lock);
}

std::string Hold::token() {
  settle();
  return make_token(claim(), resource());
}

std::string Hold::detach() {
  engine_->check_not_forked();
  if (!engine_->traits().detaches) {
    throw Error(
        Errc::unsupported,
        "a lease ends with its connection here, so there is nothing to hand on: it is held as "
        "before; keep it until the work is done, or take a store that can detach",
        {.resource = resource(), .node = engine_->traits().where, .maybe_held = false});
  }
  settle();
  Claim claim = this->claim();
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
    deadline = std::min(machine_.valid_until(), engine_->call_deadline());
  }
  const auto answer = engine_->renew_and_wait(claim, deadline);
  std::unique_lock lock(mutex_);
  if (answer.verdict == Verdict::lost) {
    perform(machine_.taken(engine_->now()), lock);
    throw lost_error();
  }
  if (answer.verdict == Verdict::unknown) {
    // It is held on, and by this process: the next renewal says so.
    const auto now = engine_->now();
    machine_.go_on_renewing(now);
    perform(machine_.tick(now), lock);
    throw answer.why->about(resource());
  }
  released_ = true;
  machine_.end(LeaseState::released);
  lock.unlock();
  engine_->keeper().cancel(*this);
  observe(Event::detached, claim, engine_->now() - acquired_);
  return make_token(claim, resource());
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
  } catch (const std::exception&) {  // the observer knows: see end_release
  }
}

void Hold::leave(TimePoint deadline) noexcept { drop(deadline - engine_->now()); }

}  // namespace interlock::core
