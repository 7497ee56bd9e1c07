#include "backends/postgres/lease_store.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/claims.hpp"
#include "backends/postgres/greeting.hpp"

namespace interlock::postgres {

namespace {

constexpr auto kListenTimeout = std::chrono::seconds(2);

const Verbs& lease_verbs() { return Verbs::of(Settings::Kind::lease); }

}  // namespace

LeaseStore::LeaseStore(Settings settings) : settings_(std::move(settings)), home_(fresh_home()) {
  traits_.name = "postgres";
  traits_.where = settings_.where;
  traits_.warnings = settings_.warnings;
  traits_.call_timeout = settings_.call_timeout;
  traits_.heartbeat = kHeartbeat;
  traits_.drift_rate = 0.001;
  if (settings_.polls) hearing_ = Hearing::impossible;
  auto how = plan();
  how.greet = greeting([this](Link& link, bool pooled, const Hello&) -> std::vector<std::string> {
    if (pooled) {
      link.set_pooled();
      return {kTidy};
    }
    session_ = fresh_home();
    std::vector<std::string> steps{session_settings(settings_.call_timeout), home_lock(session_)};
    if (last_session_ != 0) steps.push_back(end_session(last_session_));
    steps.emplace_back(kTidy);
    return steps;
  });
  how.on_open = [this] { last_session_ = session_; };
  commands_ = std::make_shared<Link>(std::move(how));
  loop_.add(commands_);
}

// No callback may run once the rest goes.
LeaseStore::~LeaseStore() { loop_.stop(); }

Link::Plan LeaseStore::plan() const {
  Link::Plan plan{
      .name = settings_.where, .keywords = settings_.keywords, .hosts = settings_.hosts};
  plan.connect_timeout = std::min<Duration>(plan.connect_timeout, settings_.call_timeout);
  plan.patience = settings_.call_timeout;
  return plan;
}

void LeaseStore::ask(const Statement& statement, std::vector<std::string> parameters, Call call,
                     Done done) {
  post(loop_, commands_,
       {.statement = &statement,
        .parameters = std::move(parameters),
        .deadline = std::min(call.deadline, BootClock::now() + settings_.call_timeout),
        .urgent = !call.caller_waits,
        .done = std::move(done)});
}

std::string LeaseStore::home() {
  const std::lock_guard lock(mutex_);
  return hearing_ == Hearing::open ? std::to_string(home_) : "0";
}

void LeaseStore::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  Parameters parameters{home()};
  add_acquire(parameters, claim, queue, settings_.prefix);
  ask(is_usual(claim) ? lease_verbs().acquire_one : lease_verbs().acquire, std::move(parameters),
      call, [this, claim, queue, call, reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        note(claim.owner, answer.verdict == Verdict::queued);
        if (answer.verdict != Verdict::queued) return reply(std::move(answer));
        // The first one of a client to wait: asks again when its turn can be told.
        const auto again = [this, claim, queue, call, reply, answer](bool listening) {
          if (!listening) return reply(answer);
          acquire(claim, queue, call, reply);
        };
        if (listen(again)) reply(std::move(answer));
      });
}

void LeaseStore::renew(const Claim& claim, Call call, Reply reply) {
  Parameters parameters{home()};
  add_renew(parameters, claim, settings_.prefix);
  ask(lease_verbs().renew, std::move(parameters), call,
      [this, claim, reply = std::move(reply)](const Outcome& outcome) {
        reply(to_answer(outcome, claim, settings_.where));
      });
}

void LeaseStore::release(const Claim& claim, Call call, Reply reply) {
  note(claim.owner, false);
  Parameters parameters{home()};
  add_release(parameters, claim, settings_.prefix);
  ask(is_usual(claim) ? lease_verbs().release_one : lease_verbs().release, std::move(parameters),
      call, [this, claim, reply = std::move(reply)](const Outcome& outcome) {
        reply(to_answer(outcome, claim, settings_.where));
      });
}

void LeaseStore::inspect(const Query& query, Call call, Report report) {
  Parameters parameters{home()};
  add_inspect(parameters, query, settings_.prefix);
  ask(lease_verbs().inspect, std::move(parameters), call,
      [this, report = std::move(report)](const Outcome& outcome) {
        report(to_snapshot(outcome, settings_.prefix, settings_.where));
      });
}

bool LeaseStore::listen(std::function<void(bool)> then) {
  const std::lock_guard lock(mutex_);
  if (hearing_ != Hearing::unneeded && hearing_ != Hearing::opening) return true;
  waiting_.push_back(std::move(then));
  hearing_ = Hearing::opening;
  if (messages_) return false;
  auto how = plan();
  if (!settings_.listen.empty()) how.hosts = settings_.listen;
  how.keywords = settings_.listen_keywords;
  // Whoever is waited for here keeps its place in the queue for five seconds.
  how.connect_timeout = std::min<Duration>(how.connect_timeout, kListenTimeout);
  how.keep_open = true;
  how.greet = greeting([this](Link&, bool pooled, const Hello&) -> std::vector<std::string> {
    if (pooled) {
      hearing_is(Hearing::impossible);
      warn(
          "a pooler is in between, so that waiters have to ask ten times a second instead of being "
          "told; listen=HOST:PORT names the server itself, and listen=off says that this is fine");
      throw Error(Errc::unsupported, "a pooler is in between, and hands on no messages");
    }
    return {session_settings(settings_.call_timeout), "LISTEN " + channel_of(home_)};
  });
  how.on_open = [this] {
    hearing_is(Hearing::open);
    if (!settings_.listen.empty())
      warn("waiters are told over a connection of their own to " + settings_.listen[0].first + ":" +
           settings_.listen[0].second);
  };
  how.on_close = [this](const Error&) { hearing_is(Hearing::closed); };
  how.on_notify = [this](const std::string& payload) {
    if (const auto owner = owner_of(payload); !owner.empty() && wake_) wake_(owner);
  };
  messages_ = std::make_shared<Link>(std::move(how));
  loop_.add(messages_);
  return false;
}

void LeaseStore::hearing_is(Hearing now) {
  std::vector<std::function<void(bool)>> waiting;
  std::unordered_set<Owner> queued;
  {
    const std::lock_guard lock(mutex_);
    if (hearing_ == Hearing::impossible) {
      if (messages_) loop_.remove(std::exchange(messages_, nullptr));
      return;
    }
    // Their turn may have been told to nobody.
    if (hearing_ == Hearing::open) queued.swap(queued_);
    hearing_ = now;
    waiting.swap(waiting_);
  }
  for (const auto& tell : waiting) tell(now == Hearing::open);
  for (const auto& owner : queued) {
    if (wake_) wake_(owner);
  }
}

void LeaseStore::note(const Owner& owner, bool queued) {
  const std::lock_guard lock(mutex_);
  if (queued) {
    queued_.insert(owner);
  } else {
    queued_.erase(owner);
  }
}

void LeaseStore::warn(const std::string& what) const {
  if (warn_)
    warn_(Error(Errc::unsupported, what,
                {.resource = {}, .node = settings_.where, .maybe_held = false}));
}

}  // namespace interlock::postgres
