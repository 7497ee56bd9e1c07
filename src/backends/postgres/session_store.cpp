#include "backends/postgres/session_store.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "backends/postgres/claims.hpp"
#include "backends/postgres/greeting.hpp"

namespace interlock::postgres {

namespace {

// Held by a session for as long as it lives, to show that it does.
std::string home_lock(std::int64_t home) {
  const auto number = std::to_string(home) + "::bigint";
  return "SELECT pg_advisory_lock(interlock.high(" + number + "), interlock.low(" + number + "))";
}

// A server that is slow to answer costs no lease, unless it takes as long as that.
constexpr Duration kLongestPatience = std::chrono::seconds(30);

// A title is for people: it need not change with every lock.
constexpr Duration kTitleDelay = std::chrono::milliseconds(20);

const Verbs& verbs() { return Verbs::of(Settings::Kind::advisory); }

}  // namespace

class SessionStore::Timer final : public io::Connection {
 public:
  explicit Timer(SessionStore& store) : store_(store) {}

  void advance(TimePoint now, Finished& finished) override {
    const std::lock_guard lock(store_.mutex_);
    if (store_.show_at_ <= now) {
      store_.show_at_ = TimePoint::max();
      if (auto title = store_.title(); title != store_.shown_) {
        store_.shown_ = title;
        finished.list.emplace_back([this, title = std::move(title)] {
          store_.ask(SessionVerbs::get().title, {title}, {}, [](const Outcome&) {});
        });
      }
    }
    auto& ends = store_.ends_;
    while (!ends.empty() && ends.begin()->first <= now) {
      const auto owner = ends.begin()->second;
      ends.erase(ends.begin());
      const auto it = store_.holds_.find(owner);
      if (it == store_.holds_.end()) continue;
      if (it->second.lost) {
        store_.holds_.erase(it);
        continue;
      }
      finished.list.emplace_back(
          [this, owner, ids = it->second.ids] { store_.expire(owner, ids); });
    }
    next_ = std::min(store_.show_at_, ends.empty() ? TimePoint::max() : ends.begin()->first);
  }
  void ready(TimePoint, Finished&, bool) override {}
  [[nodiscard]] int fd() const noexcept override { return -1; }
  [[nodiscard]] short events() const noexcept override { return 0; }
  [[nodiscard]] TimePoint next() const noexcept override { return next_; }
  [[nodiscard]] bool active() const noexcept override { return next_ != TimePoint::max(); }
  [[nodiscard]] bool busy() const noexcept override { return false; }
  [[nodiscard]] bool expects_answer() const noexcept override { return false; }
  void abandon(Finished&) override {}

 private:
  SessionStore& store_;
  TimePoint next_ = TimePoint::max();
};

SessionStore::SessionStore(Settings settings) : settings_(std::move(settings)) {
  traits_.name = "postgres";
  traits_.where = settings_.where;
  traits_.call_timeout = settings_.call_timeout;
  traits_.heartbeat = kHeartbeat;
  traits_.drift_rate = 0.001;
  traits_.notices_death = true;
  traits_.detaches = false;
  Link::Plan plan{
      .name = settings_.where, .keywords = settings_.keywords, .hosts = settings_.hosts};
  plan.connect_timeout = std::min<Duration>(plan.connect_timeout, settings_.call_timeout);
  plan.patience = settings_.call_timeout;
  const auto last_home = std::make_shared<std::int64_t>(0);
  plan.greet = greeting([this, last_home](Link& link, bool pooled, const Hello& hello) {
    if (pooled && !settings_.session_pooler) {
      throw Error(Errc::refused,
                  "a pooler (PgBouncer?) is in between, and advisory locks need a session of their "
                  "own: connect to the server itself, or use ?mode=lease; if the pooler keeps "
                  "sessions (pool_mode = session), say so with ?pooler=session");
    }
    const auto before = std::exchange(*last_home, fresh_home());
    link.set_session({std::to_string(hello.process), std::to_string(*last_home)});
    std::vector<std::string> steps{session_settings(settings_.call_timeout), home_lock(*last_home),
                                   "LISTEN " + channel_of(*last_home)};
    // A session that we lost may live on over there, with all that we had.
    if (before != 0) {
      steps.push_back("SELECT pg_terminate_backend(interlock.lock_backend(" +
                      std::to_string(before) + "), 1000)");
    }
    steps.emplace_back(kTidy);
    return steps;
  });
  plan.on_close = [this](const Error& why) { session_ended(why); };
  plan.on_notify = [this](const std::string& payload) {
    if (const auto owner = owner_of(payload); !owner.empty() && wake_) wake_(owner);
  };
  session_ = std::make_shared<Link>(std::move(plan));
  timer_ = std::make_shared<Timer>(*this);
  loop_.add(session_);
  loop_.add(timer_);
}

// No callback may run once the rest goes.
SessionStore::~SessionStore() { loop_.stop(); }

void SessionStore::ask(const Statement& statement, std::vector<std::string> parameters, Call call,
                       Done done) {
  post(loop_, session_,
       {.statement = &statement,
        .parameters = std::move(parameters),
        .deadline = std::min(call.deadline, BootClock::now() + settings_.call_timeout),
        .urgent = !call.caller_waits,
        .done = std::move(done)});
}

void SessionStore::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  Parameters parameters;
  add_acquire(parameters, claim, queue, settings_.prefix);
  expect(claim);
  ask(is_usual(claim) ? verbs().acquire_one : verbs().acquire, std::move(parameters), call,
      [this, claim, sent = BootClock::now(), reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        settle(claim, sent, answer);
        if (outcome.result && is_error(*outcome.result)) clean_up();
        reply(std::move(answer));
      });
}

void SessionStore::renew(const Claim& claim, Call call, Reply reply) {
  if (lost(claim.owner)) {
    Answer answer{.verdict = Verdict::lost};
    {
      const std::lock_guard lock(mutex_);
      answer.why = why_ended_;
    }
    return reply(std::move(answer));
  }
  Parameters parameters;
  add_renew(parameters, claim, settings_.prefix);
  ask(verbs().renew, std::move(parameters), call,
      [this, claim, sent = BootClock::now(), reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        // One that was adopted may be another session's.
        const bool known = [&] {
          const std::lock_guard lock(mutex_);
          return holds_.contains(claim.owner);
        }();
        if (known) settle(claim, sent, answer);
        reply(std::move(answer));
      });
}

void SessionStore::release(const Claim& claim, Call call, Reply reply) {
  if (lost(claim.owner)) {
    forget(claim.owner);
    return reply({.verdict = Verdict::lost});
  }
  Parameters parameters;
  add_release(parameters, claim, settings_.prefix);
  ask(is_usual(claim) ? verbs().release_one : verbs().release, std::move(parameters), call,
      [this, claim, reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        if (answer.verdict != Verdict::unknown) forget(claim.owner);
        if (outcome.result && is_error(*outcome.result)) clean_up();
        reply(std::move(answer));
      });
}

void SessionStore::inspect(const Query& query, Call call, Report report) {
  Parameters parameters;
  add_inspect(parameters, query, settings_.prefix);
  ask(verbs().inspect, std::move(parameters), call,
      [this, report = std::move(report)](const Outcome& outcome) {
        report(to_snapshot(outcome, settings_.prefix, settings_.where));
      });
}

// With the mutex.
std::string SessionStore::title() const {
  std::string name;
  for (const auto& [owner, hold] : holds_) {
    if (!hold.sure || hold.lost) continue;
    if (!name.empty()) return std::string(kTitle) + ": " + name + " and others";
    name = hold.name;
  }
  return name.empty() ? kTitle : std::string(kTitle) + ": " + name;
}

// With the mutex.
void SessionStore::title_changes() {
  if (show_at_ == TimePoint::max()) show_at_ = BootClock::now() + kTitleDelay;
}

void SessionStore::expect(const Claim& claim) {
  const std::lock_guard lock(mutex_);
  auto& hold = holds_[claim.owner];
  if (hold.ids.empty()) {
    hold.ids = ids_of(claim, settings_.prefix);
    hold.name = claim.parts.front().resource;
  }
  // It may be granted until it is given up as unanswered.
  set_end(claim.owner, hold, BootClock::now() + settings_.call_timeout + claim.ttl);
}

void SessionStore::settle(const Claim& claim, TimePoint sent, const Answer& answer) {
  if (answer.verdict == Verdict::unknown) return;
  if (answer.verdict != Verdict::granted) return forget(claim.owner);
  const std::lock_guard lock(mutex_);
  auto& hold = holds_[claim.owner];
  const auto ends = sent + claim.ttl;
  set_end(claim.owner, hold, hold.sure ? std::max(hold.ends, ends) : ends);
  if (!hold.sure) title_changes();
  hold.sure = true;
  hold.lost = false;
  session_->set_patience(std::min(claim.ttl, kLongestPatience));  // this thread drives it
  if (!claim.instead_of.empty()) {
    if (const auto it = holds_.find(claim.instead_of); it != holds_.end()) {
      it->second.sure = false;
    }
  }
}

void SessionStore::set_end(const Owner& owner, Hold& hold, TimePoint ends) {
  if (hold.ends == ends) return;
  const auto [first, last] = ends_.equal_range(hold.ends);
  for (auto it = first; it != last; ++it) {
    if (it->second != owner) continue;
    ends_.erase(it);
    break;
  }
  hold.ends = ends;
  ends_.emplace(ends, owner);
}

void SessionStore::forget(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = holds_.find(owner);
  if (it == holds_.end()) return;
  const auto [first, last] = ends_.equal_range(it->second.ends);
  for (auto end = first; end != last; ++end) {
    if (end->second != owner) continue;
    ends_.erase(end);
    break;
  }
  if (it->second.sure) title_changes();
  holds_.erase(it);
}

bool SessionStore::lost(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = holds_.find(owner);
  return it != holds_.end() && it->second.lost;
}

void SessionStore::session_ended(const Error& why) {
  std::vector<Owner> owners;
  {
    const std::lock_guard lock(mutex_);
    why_ended_.emplace(Errc::lost, "the session with the server has ended (" + why.message() + ")",
                       Error::Where{.resource = {}, .node = settings_.where, .maybe_held = false});
    shown_ = kTitle;
    for (auto& [owner, hold] : holds_) {
      if (!hold.sure || hold.lost) continue;
      hold.lost = true;
      owners.push_back(owner);
    }
  }
  if (!wake_) return;
  for (const auto& owner : owners) wake_(owner);
}

void SessionStore::expire(const Owner& owner, const std::string& ids) {
  const auto sent = BootClock::now();
  ask(SessionVerbs::get().expire, {owner.to_string(), ids}, {},
      [this, owner, sent](const Outcome& outcome) {
        if (!outcome.result || is_error(*outcome.result)) return forget(owner);
        const auto left =
            std::chrono::microseconds(std::stoll(std::string(text_at(*outcome.result, 0, 0))));
        if (left.count() <= 0) return forget(owner);
        const std::lock_guard lock(mutex_);
        const auto it = holds_.find(owner);
        if (it != holds_.end()) set_end(owner, it->second, sent + left);
      });
}

void SessionStore::clean_up() {
  ask(SessionVerbs::get().settle, {}, {}, [](const Outcome&) {});
}

}  // namespace interlock::postgres
