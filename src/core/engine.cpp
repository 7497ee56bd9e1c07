#include "core/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "core/deadlock_watch.hpp"
#include "core/forget.hpp"
#include "core/hold.hpp"
#include "core/pursuit.hpp"
#include "core/token.hpp"
#include "interlock/duration.hpp"

namespace interlock::core {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// For what concerns the store as a whole.
const Claim& no_claim() {
  static const Claim none;
  return none;
}

thread_local int on_store_thread = 0;

// So many callbacks on lost() may block, and the next loss of this client is told all the same.
constexpr std::size_t kMostLossThreads = 16;

// The calling thread's: random, and another one in a forked child.
const std::string& thread_name() {
  thread_local std::uint64_t epoch = 0;
  thread_local std::string name;
  if (name.empty() || epoch != fork_epoch()) {
    epoch = fork_epoch();
    name = "thread " + Owner::random().to_string().substr(0, 16);
  }
  return name;
}

}  // namespace

OnStoreThread::OnStoreThread() noexcept { ++on_store_thread; }
OnStoreThread::~OnStoreThread() { --on_store_thread; }

std::shared_ptr<Engine> Engine::make(std::unique_ptr<Backend> backend, ClientOptions options) {
  std::shared_ptr<Engine> engine(new Engine(std::move(backend), std::move(options)),
                                 &Engine::dispose);
  engine->backend_->on_wake([weak = engine->weak_from_this()](const Owner& owner) {
    const OnStoreThread here;
    if (const auto self = weak.lock()) self->wake(owner);
  });
  engine->tell_opened();
  engine->backend_->on_warning([weak = engine->weak_from_this()](const Error& warning) {
    const OnStoreThread here;
    if (const auto self = weak.lock())
      self->observe({.event = Event::warned, .claim = no_claim(), .error = &warning});
  });
  for (const auto& text : engine->backend_->traits().warnings) {
    const Error warning(
        Errc::refused, text,
        {.resource = {}, .node = engine->backend_->traits().where, .maybe_held = false});
    engine->observe({.event = Event::warned, .claim = no_claim(), .error = &warning});
  }
  call_at_exit(engine);
  return engine;
}

Engine::Engine(std::unique_ptr<Backend> backend, ClientOptions options)
    : epoch_(fork_epoch()),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : system_clock()),
      host_(host_name()),
      keeper_(clock_),
      losses_(kMostLossThreads),
      backend_(std::move(backend)),
      traits_(backend_->traits()) {}

Engine::~Engine() = default;

// The last one to let go may be one of the engine's own threads, which can't wait for itself to
// end.
void Engine::dispose(Engine* engine) noexcept {
  if (engine->forked()) return;  // its threads and locks stayed in the parent
  if (on_store_thread == 0 && !engine->keeper_.on_its_thread() &&
      !engine->courier_.on_its_thread() && !engine->thinker_.on_its_thread() &&
      !engine->losses_.on_its_thread()) {
    delete engine;
    return;
  }
  elsewhere([engine] { delete engine; });
}

void Engine::tell_opened() const {
  const auto& told = options_.told_at_start;
  Claim claim;
  if (told) claim.ttl = told->ttl;
  observe({.event = Event::opened,
           .claim = claim,
           .limit = told ? told->max_wait : std::optional<Duration>()});
}

void Engine::check_not_forked() const {
  if (!forked()) return;
  throw Error(
      Errc::forked,
      "this client was made before a fork, and nothing it holds is held by the child; connect anew",
      {.resource = {}, .node = traits_.where, .maybe_held = false});
}

std::shared_ptr<const Template> Engine::prepare(std::vector<Part> parts, Options options) const {
  if (parts.empty()) throw Error(Errc::invalid, "a claim needs at least one resource");
  auto what = std::make_shared<Template>();
  for (auto& part : parts) {
    check_resource(part.resource);
    if (options.name_space.empty()) continue;
    part.resource = options.name_space + ":" + part.resource;
    check_resource(part.resource);
  }
  what->resource = parts.front().resource;
  if (options.owner_id && options.owner_id->empty())
    throw Error(Errc::invalid_owner,
                "the owner id is empty; name the owner, like \"worker-7\", or leave it out",
                {.resource = what->resource, .node = {}, .maybe_held = false});
  what->parts = std::move(parts);
  normalize(what->parts, options.hierarchy);
  what->who = std::make_shared<const Who>(Who{.label = options.label,
                                              .identity = options.identity,
                                              .host = host_,
                                              .pid = options.process.value_or(getpid()),
                                              .actor = options.actor,
                                              .owner_id = options.owner_id.value_or("")});
  check_claim(
      {.owner = {1, 1}, .parts = what->parts, .ttl = options.ttl, .priority = 0, .who = what->who});
  const auto refuse = [&](Errc code, const std::string& message) {
    throw Error(code, message,
                {.resource = what->resource, .node = traits_.where, .maybe_held = false});
  };
  const auto positive = [&](const std::optional<Duration>& value, const char* name) {
    if (value && *value <= Duration::zero())
      refuse(Errc::invalid, std::string(name) + " has to be more than 0s");
  };
  positive(options.max_wait, "max_wait");
  positive(options.max_hold, "max_hold");
  if (options.margin < Duration::zero() || options.margin > options.ttl / 3)
    refuse(Errc::invalid, "margin has to be between 0s and a third of the TTL, " +
                              format_duration(options.ttl / 3));
  if (options.retry.attempts < 1) refuse(Errc::invalid, "retry needs at least one attempt");
  for (const auto& part : what->parts) {
    if (part.mode == Mode::shared && !traits_.shared)
      refuse(Errc::unsupported, "this store has no shared locks");
    if (part.mode == Mode::slots && !traits_.slots)
      refuse(Errc::unsupported,
             traits_.why_no_slots.empty() ? "this store has no semaphores" : traits_.why_no_slots);
  }
  what->options = std::move(options);
  return what;
}

namespace {

std::shared_ptr<Pursuit> make_pursuit(const std::shared_ptr<Engine>& engine,
                                      const std::shared_ptr<const Template>& what,
                                      std::shared_ptr<const Who> who, const Wait& wait) {
  if (wait.tries && wait.tries->attempts < 1) {
    throw Error(Errc::invalid, "it needs at least one attempt",
                {.resource = what->resource, .node = {}, .maybe_held = false});
  }
  return std::make_shared<Pursuit>(engine, what,
                                   Claim{.owner = Owner::random(),
                                         .parts = what->parts,
                                         .ttl = what->options.ttl,
                                         .priority = what->options.priority,
                                         .who = std::move(who)},
                                   wait);
}

void begin(Hold& hold) {
  try {
    hold.begin();
  } catch (...) {
    hold.drop();
    throw;
  }
}

}  // namespace

void Engine::start_threads(const std::string& resource, bool calls_back) {
  try {
    keeper_.start();
    if (calls_back && !options_.executor) courier_.start();
  } catch (const Error& error) {
    throw error.about(resource);
  }
}

Attempt Engine::acquire(const std::shared_ptr<const Template>& what, const Wait& wait) {
  check_not_forked();
  start_threads(what->resource, false);
  const auto pursuit = make_pursuit(shared_from_this(), what, caller(*what), wait);
  try {
    pursuit->run();
    return conclude(what, *pursuit);
  } catch (...) {
    // No memory, most likely. The caller has nothing, and nothing may stay in the store.
    pursuit->abandon();
    throw;
  }
}

void Engine::acquire(const std::shared_ptr<const Template>& what, const Wait& wait, Callback then) {
  check_not_forked();
  start_threads(what->resource, true);
  make_pursuit(shared_from_this(), what, what->who, wait)
      // std::function wants what it holds to be copyable, and an Attempt is not. It is called again if the system
      // refuses it memory, and a lease that is there by then is the one that is told.
      ->start([this, what, then = std::move(then),
               attempt = std::shared_ptr<std::optional<Attempt>>()](Pursuit& pursuit) mutable {
        if (!attempt) {
          auto room = std::make_shared<std::optional<Attempt>>();
          room->emplace(conclude(what, pursuit));
          attempt = std::move(room);
        }
        deliver([then, attempt] { then(std::move(**attempt)); });
      });
}

std::shared_ptr<const Who> Engine::caller(const Template& what) const {
  const auto& who = *what.who;
  const bool by_thread = options_.deadlocks == Deadlocks::by_thread;
  const bool by_identity = options_.deadlocks == Deadlocks::by_actor && !who.identity.empty();
  if (!who.actor.empty() || !(by_thread || by_identity)) return what.who;
  auto here = who;
  here.actor = by_thread ? thread_name() : thread_name() + " of " + who.identity;
  return std::make_shared<const Who>(std::move(here));
}

Attempt Engine::conclude(const std::shared_ptr<const Template>& what, Pursuit& pursuit) {
  const auto& result = pursuit.result();
  if (result.outcome() != Outcome::granted) {
    return {result.outcome(), pursuit.error(), pursuit.waited(), result.attempts()};
  }
  auto hold = std::make_shared<Hold>(shared_from_this(), what,
                                     Grant{.claim = pursuit.claim(),
                                           .fences = result.fences(),
                                           .sent = result.sent(),
                                           .at = pursuit.ended(),
                                           .waited = pursuit.waited(),
                                           .attempts = result.attempts()});
  if (!pursuit.give_to_lease()) {
    return {Outcome::cancelled,
            Error(Errc::cancelled,
                  "it was granted and given back: the program ends, or has no memory for the lease",
                  {.resource = what->resource, .node = traits_.where, .maybe_held = false}),
            pursuit.waited(), result.attempts()};
  }
  begin(*hold);
  return Attempt(Lease(std::move(hold)));
}

namespace {

// Makes a call and waits for what it brings, lending the thread to the store meanwhile. The reply
// may come later still, when nobody waits for it any more: so the box is shared.
template <class Brought, class Send>
std::optional<Brought> wait_for(Engine& engine, TimePoint deadline, const Send& send) {
  struct Box {
    explicit Box(std::shared_ptr<Clock> c) : clock(std::move(c)), signal(*clock) {}
    std::shared_ptr<Clock> clock;
    Signal signal;
    std::mutex mutex;
    std::optional<Brought> brought;
  };
  const auto box = std::make_shared<Box>(engine.clock());
  send(Call{.deadline = deadline, .caller_waits = true}, [box](Brought brought) {
    {
      const std::lock_guard lock(box->mutex);
      box->brought = std::move(brought);
    }
    box->signal.set();
  });
  while (true) {
    {
      const std::lock_guard lock(box->mutex);
      if (box->brought) return std::move(box->brought);
    }
    if (engine.now() >= deadline) return std::nullopt;
    engine.backend().lend(box->signal, deadline);
  }
}

}  // namespace

Snapshot Engine::inspect(const Query& query) {
  check_not_forked();
  auto snapshot = wait_for<Snapshot>(*this, call_deadline(), [&](Call how, Report report) {
    backend_->inspect(query, how, std::move(report));
  });
  if (!snapshot) {
    snapshot.emplace();
    snapshot->why.emplace(Errc::unreachable,
                          "no answer within " + format_duration(traits_.call_timeout),
                          Error::Where{.resource = {}, .node = traits_.where, .maybe_held = false});
  }
  note(no_claim(), snapshot->why ? &*snapshot->why : nullptr);
  if (snapshot->why) throw Error(*snapshot->why);
  return std::move(*snapshot);
}

Lease Engine::adopt(std::string_view text, bool renew) {
  check_not_forked();
  const auto token = parse_token(text);
  start_threads(token.resources.front(), false);
  const auto gone = [&](const char* message) {
    return Error(Errc::lost, message,
                 {.resource = token.resources.front(), .node = traits_.where, .maybe_held = false});
  };
  // The store knows the rest: modes, label, fences.
  auto what = std::make_shared<Template>();
  what->resource = token.resources.front();
  what->options = {.ttl = token.ttl, .renew = renew, .hierarchy = false};
  const auto snapshot = inspect({.resources = token.resources});
  for (const auto& state : snapshot.resources) {
    for (const auto& holder : state.holders) {
      if (holder.owner != token.owner) continue;
      what->parts.push_back({.resource = state.resource,
                             .mode = holder.mode,
                             .slots = holder.slots,
                             .capacity = state.capacity,
                             .ancestor = holder.ancestor});
      auto who = holder.who;
      if (renew) {
        who.host = host_;
        who.pid = getpid();
      }
      what->who = std::make_shared<const Who>(std::move(who));
    }
  }
  const bool whole = what->parts.size() == token.resources.size();
  if (what->parts.empty()) throw gone("the detached lease has ended; or it is in another store");
  normalize(what->parts, false);
  what->options.hierarchy = std::any_of(what->parts.begin(), what->parts.end(),
                                        [](const Part& part) { return part.ancestor; });
  const Claim claim{.owner = token.owner,
                    .parts = what->parts,
                    .ttl = token.ttl,
                    .priority = 0,
                    .who = what->who};
  if (!whole) {  // a claim is all or nothing
    (void)release_and_wait(claim, call_deadline());
    throw gone("some of the detached lease was taken away, so the rest of it was given back");
  }
  const auto sent = now();
  auto answer = renew_and_wait(claim, call_deadline());
  if (answer.verdict == Verdict::unknown) throw answer.why->about(what->resource);
  if (answer.verdict != Verdict::granted) throw gone("the detached lease has ended");
  observe({.event = Event::adopted, .claim = claim, .resource = what->resource});
  auto hold = std::make_shared<Hold>(shared_from_this(), what,
                                     Grant{.claim = claim,
                                           .fences = std::move(answer.fences),
                                           .sent = sent,
                                           .at = now(),
                                           .waited = {},
                                           .attempts = 1});
  begin(*hold);
  return Lease(std::move(hold));
}

bool Engine::evict(std::string_view resource, const Owner& owner) {
  check_not_forked();
  check_resource(resource);
  Claim claim{.owner = owner,
              .parts = {{.resource = std::string(resource)}},
              .ttl = std::chrono::seconds(1),
              .priority = 0,
              .who = std::make_shared<const Who>()};
  // What it has above goes with it: nobody else would clean that up for a detached lease.
  auto names = ancestors(resource);
  names.emplace_back(resource);
  for (const auto& state : inspect({.resources = std::move(names)}).resources) {
    for (const auto* entries : {&state.holders, &state.waiters}) {
      const bool above = std::any_of(entries->begin(), entries->end(), [&](const Entry& entry) {
        return entry.owner == owner && entry.ancestor;
      });
      if (!above) continue;
      if (state.resource == resource) {
        throw Error(
            Errc::invalid, "it is held only because something below it is: that is what has to go",
            {.resource = std::string(resource), .node = traits_.where, .maybe_held = false});
      }
      claim.parts.push_back({.resource = state.resource, .mode = Mode::shared, .ancestor = true});
    }
  }
  normalize(claim.parts, false);
  const auto answer = release_and_wait(claim, call_deadline());
  if (answer.verdict == Verdict::unknown) throw answer.why->about(std::string(resource));
  if (answer.verdict == Verdict::lost) return false;
  wake(owner);  // it may be this client's own, of which no store tells
  return true;
}

template <class Send>
Answer Engine::call(const Claim& claim, TimePoint deadline, const Send& send) {
  auto answer = wait_for<Answer>(*this, deadline, send);
  if (!answer) {
    answer = Answer::failed({Errc::unreachable,
                             "no answer in time",
                             {.resource = {}, .node = traits_.where, .maybe_held = true}});
  } else if (answer->verdict == Verdict::unknown && !answer->why) {
    answer->why.emplace(Errc::unreachable, "the store gave no reason");
  }
  note(claim, *answer);
  return std::move(*answer);
}

Answer Engine::acquire_and_wait(const Claim& claim, TimePoint deadline) {
  return call(claim, deadline, [&](Call how, Reply reply) {
    backend_->acquire(claim, false, how, std::move(reply));
  });
}

Answer Engine::renew_and_wait(const Claim& claim, TimePoint deadline) {
  return call(claim, deadline,
              [&](Call how, Reply reply) { backend_->renew(claim, how, std::move(reply)); });
}

Answer Engine::release_and_wait(const Claim& claim, TimePoint deadline) {
  return call(claim, deadline,
              [&](Call how, Reply reply) { backend_->release(claim, how, std::move(reply)); });
}

void Engine::forget(std::vector<Claim> claims, std::function<void(const Answer&)> done) {
  std::make_shared<Forget>(shared_from_this(), std::move(claims), std::move(done))->start();
}

bool Engine::listen(const Owner& owner, std::weak_ptr<Listener> listener) {
  const std::lock_guard lock(mutex_);
  waiters_[owner] = std::move(listener);
  const auto early = std::find(early_wakes_.begin(), early_wakes_.end(), owner);
  if (early == early_wakes_.end()) return false;
  *early = {};
  return true;
}

void Engine::unlisten(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  waiters_.erase(owner);
}

void Engine::wake(const Owner& owner) {
  std::shared_ptr<Listener> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = waiters_.find(owner); it != waiters_.end()) {
      waiter = it->second.lock();
    } else {
      early_wakes_[next_early_wake_++ % early_wakes_.size()] = owner;
    }
  }
  if (waiter) return waiter->wake(owner);
  // Seldom: a lease that was taken away, or a waiter that does not listen yet.
  for (const auto& listener : listeners()) listener->wake(owner);
}

// Every lease, every asynchronous acquisition and every clean-up is in the keeper's care.
std::vector<std::shared_ptr<Listener>> Engine::listeners() {
  std::vector<std::shared_ptr<Listener>> found;
  for (const auto& task : keeper_.tasks()) {
    if (auto listener = std::dynamic_pointer_cast<Listener>(task))
      found.push_back(std::move(listener));
  }
  return found;
}

void Engine::watch_for_deadlocks(const std::weak_ptr<Pursuit>& waiter) {
  if (options_.deadlocks == Deadlocks::off) return;
  const auto pursuit = waiter.lock();
  if (!pursuit || pursuit->claim().who->actor.empty()) return;
  const auto watch = [&] {
    const std::lock_guard lock(mutex_);
    if (!deadlocks_) deadlocks_ = std::make_shared<DeadlockWatch>(weak_from_this());
    return deadlocks_;
  }();
  watch->add(pursuit);
}

void Engine::deliver(std::function<void()> callback) {
  if (options_.executor) {
    options_.executor(std::move(callback));
  } else {
    courier_.post(std::move(callback));
  }
}

void Engine::tell_lost(const std::stop_source& signal) {
  if (!signal.stop_possible()) return;
  try {
    losses_.post([signal] { signal.request_stop(); });
  } catch (const std::exception&) {
    signal.request_stop();  // no thread can be had, or no memory: here is better than never
  }
}

void Engine::note(const Claim& claim, const Answer& answer) noexcept {
  note(claim, answer.verdict == Verdict::unknown && answer.why ? &*answer.why : nullptr);
}

void Engine::note(const Claim& claim, const Error* why) noexcept {
  if (!options_.observer) return;
  const bool down = why != nullptr && why->retryable();
  if (down_.exchange(down) == down) return;
  observe({.event = down ? Event::store_down : Event::store_back, .claim = claim, .error = why});
}

void Engine::at_exit() noexcept {
  if (forked()) return;
  const auto deadline = later(now(), options_.release_timeout);
  // First, so that it grants nothing after the look at who has what.
  keeper_.stop();
  std::vector<std::shared_ptr<Listener>> waiters;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [owner, weak] : waiters_) {
      if (auto waiter = weak.lock()) waiters.push_back(std::move(waiter));
    }
  }
  for (const auto& waiter : waiters) waiter->leave(deadline);
  for (const auto& listener : listeners()) listener->leave(deadline);
  // What the store's libraries need may go at any moment now.
  thinker_.stop();
  if (!keeper_.tasks().empty()) keep_to_the_end(shared_from_this());
}

}  // namespace interlock::core
