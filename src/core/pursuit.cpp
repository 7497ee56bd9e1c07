#include "core/pursuit.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/contain.hpp"
#include "interlock/duration.hpp"

namespace interlock::core {

namespace {

constexpr Duration kPatienceAtExit = std::chrono::milliseconds(250);

Acquisition::Plan make_plan(const Engine& engine, const Claim& claim, const Wait& wait,
                            const Options& options) {
  const auto& traits = engine.traits();
  Acquisition::Plan plan{
      .ttl = claim.ttl, .drift = traits.drift(claim.ttl) + std::min(options.margin, claim.ttl / 3)};
  plan.queue = traits.queues;
  plan.one_shot = wait.limit && *wait.limit <= Duration::zero();
  plan.tries = wait.tries;
  if (wait.limit && !plan.one_shot) plan.deadline = later(engine.now(), *wait.limit);
  plan.retry = options.retry;
  plan.heartbeat = traits.heartbeat;
  plan.call_timeout = traits.call_timeout;
  plan.seed = claim.owner.low;
  return plan;
}

}  // namespace

Pursuit::Pursuit(std::shared_ptr<Engine> engine, std::shared_ptr<const Template> what, Claim claim,
                 const Wait& wait)
    : engine_(std::move(engine)),
      what_(std::move(what)),
      claim_(std::move(claim)),
      limit_(wait.limit),
      stop_(wait.stop),
      machine_(make_plan(*engine_, claim_, wait, what_->options)),
      signal_(*engine_->clock()) {}

void Pursuit::asked() {
  engine_->observe(
      {.event = Event::asked, .claim = claim_, .resource = what_->resource, .limit = limit_});
  story_ = Story::asked;
}

void Pursuit::begin() {
  const auto now = engine_->now();
  perform(machine_.start(now), now);
}

void Pursuit::run() {
  blocking_ = true;
  asked();
  if (stop_.stop_possible()) on_stop_.emplace(stop_, [this] { cancel(); });
  begin();
  while (!pump()) engine_->backend().lend(signal_, machine_.next_tick());
  on_stop_.reset();
  finish();
}

void Pursuit::start(Done done) {
  done_ = std::move(done);
  asked();
  engine_->keeper().schedule(shared_from_this(), TimePoint{});
}

void Pursuit::due(TimePoint) {
  if (!over_) {  // written by this thread only
    if (machine_.attempts() == 0) begin();
    // Also if the begin found no memory.
    if (stop_.stop_possible() && !on_stop_) {
      on_stop_.emplace(stop_, [self = weak_from_this()] {
        if (const auto pursuit = self.lock()) pursuit->cancel();
      });
    }
    if (!pump()) {
      engine_->keeper().schedule(shared_from_this(), machine_.next_tick());
      // What came between the pump and the line above asked for an earlier time, or found no memory for it: look again.
      const std::lock_guard lock(mutex_);
      if (!mail_.empty() || cancelled_) engine_->keeper().schedule(shared_from_this(), TimePoint{});
      return;
    }
    on_stop_.reset();
  }
  finish();
  tell();
}

// If there is no memory for the answer just now, the keeper comes again.
void Pursuit::tell() {
  if (!done_) return;
  done_(*this);
  done_ = nullptr;
}

void Pursuit::post(Mail mail) {
  {
    std::unique_lock lock(mutex_);
    if (over_) {
      lock.unlock();
      return too_late(mail);
    }
    mail_.push_back(std::move(mail));
    if (!blocking_) engine_->keeper().schedule(shared_from_this(), TimePoint{});
  }
  if (blocking_) signal_.set();  // without the lock, which is the first thing the sleeper takes
}

// Within request_stop(), where an exception would end the process. The keeper finds no memory only for a task that it
// runs at this moment, and that looks again.
void Pursuit::cancel() noexcept {
  cancelled_ = true;
  if (blocking_) return signal_.set();
  (void)contain([this] { engine_->keeper().schedule(shared_from_this(), TimePoint{}); });
}

// The machine does not change any more. It only says whether the reply left something behind.
void Pursuit::too_late(Mail& mail) {
  if (mail.kind != Mail::Kind::reply) return;
  const auto step = machine_.reply(engine_->now(), mail.call, mail.sent, std::move(mail.answer));
  if (step.forget) forget();
}

// What takes over from a lease may have ended the lease's own hold: the lease settles it.
void Pursuit::forget() {
  if (claim_.instead_of.empty()) engine_->forget({claim_});
}

bool Pursuit::pump() {
  std::vector<Mail> mail;
  while (true) {
    if (cancelled_ && !machine_.done()) {
      const auto now = ended_ = engine_->now();
      perform(machine_.cancel(now), now);
    }
    mail.clear();
    {
      const std::lock_guard lock(mutex_);
      mail.swap(mail_);
      // Decided together with the mailbox, so that no reply falls between the two.
      if (mail.empty() && machine_.done()) over_ = true;
    }
    if (mail.empty()) {
      if (machine_.done()) return true;
      const auto now = ended_ = engine_->now();
      if (now < machine_.next_tick()) return false;
      perform(machine_.tick(now), now);
      continue;
    }
    for (auto& item : mail) {
      const auto now = ended_ = engine_->now();
      switch (item.kind) {
        case Mail::Kind::reply:
          engine_->note(claim_, item.answer);
          perform(machine_.reply(now, item.call, item.sent, std::move(item.answer)), now);
          break;
        case Mail::Kind::wake:
          perform(machine_.wake(now), now);
          break;
        case Mail::Kind::fail:
          perform(machine_.fail(std::move(*item.answer.why)), now);
          break;
      }
    }
    if (const auto place = machine_.place(); place && place != told_place_) {
      told_place_ = place;
      if (!std::exchange(listening_, true)) {
        if (engine_->listen(claim_.owner, weak_from_this()))
          perform(machine_.wake(engine_->now()), engine_->now());
        engine_->watch_for_deadlocks(weak_from_this());
      }
      engine_->observe(
          {.event = Event::queued, .claim = claim_, .resource = what_->resource, .place = *place});
    }
  }
}

void Pursuit::perform(const Acquisition::Step& step, TimePoint now) {
  if (step.ask) {
    ++unanswered_;
    if (fate_ == Fate::has_left) {  // nothing may come after the release
      --unanswered_;
      return;
    }
    engine_->backend().acquire(
        claim_, machine_.queue(), {.deadline = step.call_deadline, .caller_waits = blocking_},
        [self = HeldByStore(shared_from_this()), call = step.call, now](Answer answer) {
          --self->unanswered_;
          const auto counts_from = now - answer.age;
          self->post({.kind = Mail::Kind::reply,
                      .call = call,
                      .sent = counts_from,
                      .answer = std::move(answer)});
        });
  }
  if (step.forget) forget();
}

void Pursuit::stop_listening() {
  if (std::exchange(listening_, false)) engine_->unlisten(claim_.owner);
}

void Pursuit::finish() {
  stop_listening();
  if (story_ != Story::asked) return;
  if (machine_.outcome() == Outcome::granted) {
    engine_->observe({.event = Event::granted,
                      .claim = claim_,
                      .resource = what_->resource,
                      .elapsed = waited()});
    story_ = Story::granted;
    return;
  }
  if (engine_->options().observer) {
    end_story(machine_.outcome() == Outcome::failed ? Event::refused : Event::timed_out, waited(),
              error());
  }
}

void Pursuit::end_story(Event how, Duration elapsed, const Error& why) {
  engine_->observe({.event = how,
                    .claim = claim_,
                    .resource = what_->resource,
                    .elapsed = elapsed,
                    .limit = limit_,
                    .error = &why});
  story_ = Story::over;
}

void Pursuit::leave(TimePoint deadline) noexcept {
  if (!claim_.instead_of.empty()) return;  // the lease leaves
  auto unfinished = Fate::unfinished;
  if (!fate_.compare_exchange_strong(unfinished, Fate::has_left)) return;
  // A call that is under way could be served after the release, and stay.
  const auto patience = std::min(deadline, engine_->now() + kPatienceAtExit);
  while (unanswered_ > 0 && engine_->now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  (void)engine_->release_and_wait(claim_, deadline);
}

void Pursuit::abandon() noexcept {
  const bool granted = machine_.outcome() == Outcome::granted;
  const auto now = engine_->now();
  const auto tried = machine_.attempts() == 0 ? Duration() : machine_.waited(now);
  const auto step = machine_.cancel(now);
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  on_stop_.reset();
  (void)contain([this] { stop_listening(); });
  if (fate_ == Fate::has_lease) return;
  (void)contain([&] {
    const Error why(
        Errc::refused, "there was no memory for it",
        {.resource = what_->resource, .node = engine_->traits().where, .maybe_held = false});
    if (story_ == Story::asked) end_story(Event::refused, tried, why);
    // A change of modes has not begun a lease that would end with it.
    if (story_ == Story::granted && claim_.instead_of.empty())
      end_story(Event::release_failed, {}, why);
  });
  if (!granted && !step.forget) return;
  (void)contain([this] { forget(); });
}

Error Pursuit::error() const {
  const auto& resource = what_->resource;
  const auto& where = engine_->traits().where;
  const auto time = format_duration(waited());
  const auto tries =
      machine_.attempts() == 1 ? "1 try" : std::to_string(machine_.attempts()) + " tries";
  const auto make = [&](Errc code, std::string message) {
    return Error(code, std::move(message),
                 {.resource = resource, .node = where, .maybe_held = false});
  };
  switch (machine_.outcome()) {
    case Outcome::busy:
      return make(Errc::busy, "somebody else has it");
    case Outcome::timed_out:
      if (!machine_.answered()) return make(Errc::timed_out, "there was no answer in " + time);
      // Only of the first in line it is known that somebody holds it.
      if (const auto ahead = machine_.place().value_or(0); ahead > 0)
        return make(Errc::timed_out, "after " + time + ", " + std::to_string(ahead) +
                                         (ahead == 1 ? " other was" : " others were") +
                                         " still ahead in the queue");
      return make(Errc::timed_out, "somebody else had it for all of " + time);
    case Outcome::exhausted:
      return make(Errc::exhausted, "somebody else had it at each of " + tries);
    case Outcome::cancelled:
      return make(Errc::cancelled, "stopped by the caller after " + time);
    case Outcome::failed:
    case Outcome::granted:
      break;
  }
  const auto& why = machine_.why();
  if (!why) return make(Errc::unreachable, "no answer");
  auto message = why->message();
  if (why->retryable()) message += "; gave up after " + tries + " in " + time;
  return {why->errc(),
          std::move(message),
          {.resource = why->resource().empty() ? resource : why->resource(),
           .node = why->node().empty() ? where : why->node(),
           .maybe_held = why->maybe_held()}};
}

}  // namespace interlock::core
