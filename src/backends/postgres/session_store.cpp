#include "backends/postgres/session_store.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

#include "backends/postgres/claims.hpp"
#include "backends/postgres/greeting.hpp"

namespace interlock::postgres {

namespace {

// A server that is slow to answer costs no lease, unless it takes as long as that.
constexpr Duration kLongestPatience = std::chrono::seconds(30);

// A title is for people: it need not change with every lock.
constexpr Duration kTitleDelay = std::chrono::milliseconds(20);

// When so many locks were handed over to us within that time, a second session is worth its price.
constexpr std::size_t kManyHandovers = 4;
constexpr Duration kLately = std::chrono::seconds(1);
constexpr Duration kIdle = std::chrono::seconds(10);  // and then it is not
// What could not be cleaned up is tried again after this time.
constexpr Duration kAgain = std::chrono::milliseconds(500);
// When the server would not have it.
constexpr Duration kPause = std::chrono::minutes(5);

std::string second_settings(bool modest) {
  std::string sql = "SET statement_timeout = 0";
  // A connection that others may lack is not worth it.
  if (modest) {
    sql +=
        "; DO $$ BEGIN IF (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client "
        "backend') > current_setting('max_connections')::int / 2 THEN RAISE EXCEPTION USING "
        "ERRCODE = '53300', MESSAGE = 'no second session of Interlock, as half of max_connections "
        "is in use'; END IF; END $$";
  }
  return sql;
}

const Verbs& lock_verbs() { return Verbs::of(Settings::Kind::advisory); }

}  // namespace

class SessionStore::Timer final : public io::Connection {
 public:
  explicit Timer(SessionStore& store) : store_(store) {}

  void advance(TimePoint now, Finished& finished) override {
    const std::lock_guard lock(store_.mutex_);
    if (store_.show_at_ <= now) {
      store_.show_at_ = TimePoint::max();
      show(store_.main_, finished);
      if (store_.second_is_ == Second::open) show(store_.second_, finished);
    }
    auto clean_up_at = TimePoint::max();
    for (auto* const session : {&store_.main_, &store_.second_}) {
      if (session->clean_up_at <= now) {
        session->clean_up_at = TimePoint::max();
        finished.list.emplace_back([this, session] { store_.clean_up(*session); });
      }
      clean_up_at = std::min(clean_up_at, session->clean_up_at);
    }
    auto idle_at = TimePoint::max();
    if (store_.second_is_ == Second::open && !store_.turn_ && store_.second_.holds == 0) {
      idle_at = store_.used_ + kIdle;
      if (idle_at <= now) {
        idle_at = TimePoint::max();
        finished.list.emplace_back([this] { store_.close_second(); });
      }
    }
    auto& ends = store_.ends_;
    while (!ends.empty() && ends.begin()->first <= now) {
      const auto owner = ends.begin()->second;
      ends.erase(ends.begin());
      const auto it = store_.holds_.find(owner);
      if (it == store_.holds_.end()) continue;
      if (it->second.lost) {
        --it->second.session->holds;
        store_.holds_.erase(it);
        continue;
      }
      finished.list.emplace_back(
          [this, owner, ids = it->second.ids] { store_.expire(owner, ids); });
    }
    next_ = std::min({idle_at, clean_up_at, store_.show_at_,
                      ends.empty() ? TimePoint::max() : ends.begin()->first});
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
  // With the mutex.
  void show(Session& session, Finished& finished) {
    auto title = store_.title(session);
    if (title == session.shown) return;
    session.shown = title;
    finished.list.emplace_back([this, &session, title = std::move(title)] {
      store_.ask(session, SessionVerbs::get().title, {title}, {}, [](const Outcome&) {});
    });
  }

  SessionStore& store_;
  TimePoint next_ = TimePoint::max();
};

SessionStore::SessionStore(Settings settings) : settings_(std::move(settings)) {
  traits_.name = "postgres";
  traits_.where = settings_.where;
  traits_.warnings = settings_.warnings;
  traits_.call_timeout = settings_.call_timeout;
  traits_.heartbeat = kHeartbeat;
  traits_.drift_rate = 0.001;
  traits_.notices_death = true;
  traits_.detaches = false;
  main_.link = make_link(main_);
  second_.link = make_link(second_);
  timer_ = std::make_shared<Timer>(*this);
  loop_.add(main_.link);
  loop_.add(second_.link);
  loop_.add(timer_);
}

std::shared_ptr<Link> SessionStore::make_link(Session& session) {
  const bool second = &session == &second_;
  Link::Plan plan{
      .name = settings_.where, .keywords = settings_.keywords, .hosts = settings_.hosts};
  plan.connect_timeout = std::min<Duration>(plan.connect_timeout, settings_.call_timeout);
  plan.patience = settings_.call_timeout + (second ? 2 * kLongestBlock : Duration::zero());
  plan.greet = greeting([this, &session, second](Link& link, bool pooled, const Hello& hello) {
    if (pooled && !settings_.session_pooler) {
      throw Error(Errc::refused,
                  "a pooler (PgBouncer?) is in between, and advisory locks need a session of their "
                  "own: connect to the server itself, or use ?mode=lease; if the pooler keeps "
                  "sessions (pool_mode = session), say so with ?pooler=session");
    }
    session.home = fresh_home(second);
    link.set_session({std::to_string(hello.process), std::to_string(session.home)});
    std::vector<std::string> steps{session_settings(settings_.call_timeout),
                                   home_lock(session.home), "LISTEN " + channel_of(session.home)};
    if (second) steps.push_back(second_settings(settings_.waiting != Settings::Waiting::blocks));
    if (session.last_open != 0) steps.push_back(end_session(session.last_open));
    // After a crash of the server, numbers that were given out without a trace on its disk come again.
    if (!second) steps.emplace_back(kSkipNumbers);
    steps.emplace_back(kTidy);
    return steps;
  });
  plan.on_error = [this, &session](const Statement& statement) {
    const std::lock_guard lock(mutex_);
    const bool again = &statement == &SessionVerbs::get().settle;
    const auto at = BootClock::now() + (again ? kAgain : Duration::zero());
    session.clean_up_at = std::min(session.clean_up_at, at);
  };
  plan.on_open = [this, &session, second] {
    session.last_open = session.home;
    if (!second) return;
    const std::lock_guard lock(mutex_);
    second_is_ = Second::open;
    used_ = BootClock::now();
  };
  plan.on_close = [this, &session](const Error& why) { session_ended(session, why); };
  plan.on_notify = [this](const std::string& payload) {
    const auto owner = owner_of(payload);
    if (owner.empty()) return;
    handed_over();
    if (wake_) wake_(owner);
  };
  return std::make_shared<Link>(std::move(plan));
}

// No callback may run once the rest goes.
SessionStore::~SessionStore() { loop_.stop(); }

void SessionStore::ask(const Session& session, const Statement& statement,
                       std::vector<std::string> parameters, Call call, Done done) {
  post(loop_, session.link,
       {.statement = &statement,
        .parameters = std::move(parameters),
        .deadline = std::min(call.deadline, BootClock::now() + settings_.call_timeout),
        .urgent = !call.caller_waits,
        .done = std::move(done)});
}

void SessionStore::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  if (auto answer = known(claim.owner)) return reply(std::move(*answer));
  {
    const std::lock_guard lock(mutex_);
    if (comes_behind(claim)) {
      turn_->behind.emplace_back([=, this] { acquire(claim, queue, call, reply); });
      return;
    }
  }
  Parameters parameters;
  add_acquire(parameters, claim, queue, settings_.prefix);
  const auto place = expect(claim, queue);
  ask(place.session, is_usual(claim) ? lock_verbs().acquire_one : lock_verbs().acquire, parameters,
      call,
      [this, &session = place.session, waits = place.waits, claim, sent = BootClock::now(),
       reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        settle(claim, session, sent, answer);
        reply(std::move(answer));
        if (waits) go_on_behind();
        if (&session != &main_) return;
        const std::lock_guard lock(mutex_);
        --asking_;
      });
  if (place.waits) wait_there(claim, std::move(parameters));
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
  auto& session = session_of(claim.owner);
  ask(session, lock_verbs().renew, std::move(parameters), call,
      [this, &session, claim, sent = BootClock::now(),
       reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        // One that was adopted may be another session's.
        const bool known = [&] {
          const std::lock_guard lock(mutex_);
          return holds_.contains(claim.owner);
        }();
        if (known) settle(claim, session, sent, answer);
        reply(std::move(answer));
      });
}

void SessionStore::release(const Claim& claim, Call call, Reply reply) {
  if (lost(claim.owner)) {
    forget_parts(claim);
    return reply({.verdict = Verdict::lost});
  }
  if (waits_there(claim.owner)) return leave_the_line(claim, call, std::move(reply));
  Parameters parameters;
  add_release(parameters, claim, settings_.prefix);
  ask(session_of(claim.owner), is_usual(claim) ? lock_verbs().release_one : lock_verbs().release,
      std::move(parameters), call, [this, claim, reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        if (answer.verdict != Verdict::unknown) forget_parts(claim);
        reply(std::move(answer));
      });
}

void SessionStore::inspect(const Query& query, Call call, Report report) {
  Parameters parameters;
  add_inspect(parameters, query, settings_.prefix);
  ask(main_, lock_verbs().inspect, std::move(parameters), call,
      [this, report = std::move(report)](const Outcome& outcome) {
        report(to_snapshot(outcome, settings_.prefix, settings_.where));
      });
}

// With the mutex.
std::string SessionStore::title(const Session& session) const {
  std::string name;
  for (const auto& [owner, hold] : holds_) {
    if (hold.session != &session || !hold.sure || hold.lost) continue;
    if (!name.empty()) return std::string(kTitle) + ": " + name + " and others";
    name = hold.resources.front();
  }
  return name.empty() ? kTitle : std::string(kTitle) + ": " + name;
}

// With the mutex.
void SessionStore::title_changes() {
  if (show_at_ == TimePoint::max()) show_at_ = BootClock::now() + kTitleDelay;
}

// With the mutex.
SessionStore::Hold& SessionStore::hold_of(const Claim& claim, Session& session) {
  auto& hold = holds_[claim.owner];
  if (hold.session == nullptr) {
    hold.ids = ids_of(claim, settings_.prefix);
    for (const auto& part : claim.parts) hold.resources.push_back(part.resource);
    hold.session = &session;
    ++session.holds;
  }
  return hold;
}

SessionStore::Place SessionStore::expect(const Claim& claim, bool queue) {
  const std::lock_guard lock(mutex_);
  bool waits = false;
  // A hold that goes on stays where it is.
  const auto before = holds_.find(claim.instead_of);
  auto* const there = before == holds_.end() ? nullptr : before->second.session;
  if (!holds_.contains(claim.owner)) waits = there == nullptr && may_wait_there(claim, queue);
  auto& hold = hold_of(claim, there != nullptr ? *there : waits ? second_ : main_);
  // It may be granted until it is given up as unanswered. (If it holds, its time goes on as it was.)
  if (!hold.sure || hold.lost)
    set_end(claim.owner, hold,
            BootClock::now() + settings_.call_timeout + kLongestBlock + claim.ttl);
  if (hold.session == &main_) ++asking_;
  return {.session = *hold.session, .waits = waits};
}

void SessionStore::settle(const Claim& claim, Session& session, TimePoint sent,
                          const Answer& answer) {
  if (answer.verdict == Verdict::unknown) return;
  if (answer.verdict == Verdict::queued && waits_there(claim.owner)) {
    const std::lock_guard lock(mutex_);
    if (turn_) turn_->queued = answer;
    return;
  }
  if (answer.verdict != Verdict::granted) {
    forget(claim.owner);
    // Nobody waits for it there.
    if (answer.verdict == Verdict::queued && &session == &second_ && is_usual(claim) && wake_)
      wake_(claim.owner);
    return;
  }
  const std::lock_guard lock(mutex_);
  auto& hold = hold_of(claim, session);
  const auto ends = sent + claim.ttl;
  set_end(claim.owner, hold, hold.sure ? std::max(hold.ends, ends) : ends);
  if (!hold.sure) title_changes();
  hold.sure = true;
  hold.lost = false;
  hold.session->link->set_patience(std::min(claim.ttl, kLongestPatience));  // this thread drives it
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
  --it->second.session->holds;
  holds_.erase(it);
}

void SessionStore::forget_parts(const Claim& claim) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = holds_.find(claim.owner);
    if (it == holds_.end()) return;
    auto& left = it->second.resources;
    std::erase_if(left, [&](const auto& name) { return claim.find(name) != nullptr; });
    if (!left.empty()) return title_changes();
  }
  forget(claim.owner);
}

SessionStore::Session& SessionStore::session_of(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = holds_.find(owner);
  return it == holds_.end() ? main_ : *it->second.session;
}

bool SessionStore::lost(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = holds_.find(owner);
  return it != holds_.end() && it->second.lost;
}

void SessionStore::session_ended(Session& session, const Error& why) {
  std::vector<Owner> owners;
  {
    const std::lock_guard lock(mutex_);
    if (&session == &second_) {
      if (std::exchange(second_is_, Second::down) == Second::opening)
        open_at_ = BootClock::now() + kPause;
      // It may live on over there, with all that we had.
      if (second_.home != 0 && second_.holds > 0)
        ask(main_, SessionVerbs::get().end, {std::to_string(second_.home)}, {},
            [](const Outcome&) {});
      // Whoever knows of no grant asks elsewhere from now on.
      for (auto& [owner, hold] : holds_) {
        if (hold.session != &second_ || (hold.sure && !hold.news)) continue;
        if (hold.news) owners.push_back(owner);
        hold.news.reset();
        hold.sure = false;
        hold.session = &main_;
        --second_.holds;
        ++main_.holds;
      }
    }
    why_ended_.emplace(Errc::lost, "the session with the server has ended (" + why.message() + ")",
                       Error::Where{.resource = {}, .node = settings_.where, .maybe_held = false});
    session.shown = kTitle;
    session.clean_up_at = TimePoint::max();
    for (auto& [owner, hold] : holds_) {
      if (hold.session != &session || !hold.sure || hold.lost) continue;
      hold.lost = true;
      owners.push_back(owner);
    }
  }
  if (!wake_) return;
  for (const auto& owner : owners) wake_(owner);
}

void SessionStore::expire(const Owner& owner, const std::string& ids) {
  const auto sent = BootClock::now();
  ask(session_of(owner), SessionVerbs::get().expire, {owner.to_string(), ids}, {},
      [this, owner, sent](const Outcome& outcome) {
        auto again = BootClock::now() + kAgain;
        if (outcome.result) {
          const auto text = text_at(*outcome.result, 0, 0);
          std::int64_t left_us = 0;
          std::from_chars(text.data(), text.data() + text.size(), left_us);
          if (left_us <= 0) return forget(owner);
          constexpr std::int64_t kHourInMicroseconds = 3'600'000'000;  // a server may say anything
          again = sent + std::chrono::microseconds(std::min(left_us, kHourInMicroseconds));
        }
        const std::lock_guard lock(mutex_);
        const auto it = holds_.find(owner);
        if (it != holds_.end()) set_end(owner, it->second, again);
      });
}

// If that fails, it is tried again: on_error. If there is no answer, it may yet be done.
void SessionStore::clean_up(const Session& session) {
  ask(session, SessionVerbs::get().settle, {}, {}, [](const Outcome&) {});
}

// With the mutex. If so, it has its turn there.
bool SessionStore::may_wait_there(const Claim& claim, bool queue) {
  using Waiting = Settings::Waiting;
  if (!queue || !is_usual(claim) || settings_.waiting == Waiting::told) return false;
  // Those who asked before stay before it.
  if (turn_ || second_.holds > 0 || asking_ > 0 || rested_ == claim.owner) return false;
  const auto now = BootClock::now();
  if (settings_.waiting == Waiting::both &&
      (second_is_ != Second::open || handovers_.empty() || now - handovers_.back() > kLately))
    return false;
  turn_.emplace(Turn{.owner = claim.owner, .name = claim.parts.front().resource});
  used_ = now;
  return true;
}

// A lock came to us from somebody else.
void SessionStore::handed_over() {
  const std::lock_guard lock(mutex_);
  const auto now = BootClock::now();
  handovers_.push_back(now);
  if (handovers_.size() <= kManyHandovers) return;
  handovers_.pop_front();
  if (settings_.waiting != Settings::Waiting::both || second_is_ != Second::down ||
      now < open_at_ || now - handovers_.front() > kLately)
    return;
  second_is_ = Second::opening;
  ask(second_, SessionVerbs::get().title, {kTitle}, {}, [](const Outcome&) {});
}

// Unless somebody has come meanwhile.
void SessionStore::close_second() {
  loop_.post(
      [this](TimePoint now, Finished& finished) {
        {
          const std::lock_guard lock(mutex_);
          if (turn_ || second_.holds > 0) return;
          second_is_ = Second::down;
        }
        second_.link->reconnect(now, finished);
      },
      false);
}

// What it waits for comes behind what it was told first.
void SessionStore::wait_there(const Claim& claim, Parameters parameters) {
  post(loop_, second_.link,
       {.statement = &SessionVerbs::get().wait,
        .parameters = std::move(parameters),
        .waits = true,
        .done = [this, claim, sent = BootClock::now()](const Outcome& outcome) {
          waited(claim, sent, outcome);
        }});
}

void SessionStore::waited(const Claim& claim, TimePoint sent, const Outcome& outcome) {
  const auto [time, answer] = to_waited(outcome, claim, settings_.where);
  const bool granted = answer.verdict == Verdict::granted;
  // By our clock, it was not granted before.
  const auto since = std::min(BootClock::now(), sent + time - traits_.drift(time));
  {
    const std::lock_guard lock(mutex_);
    const bool told = turn_->queued.has_value();
    turn_.reset();
    rested_ = claim.owner;
    used_ = BootClock::now();
    const auto it = holds_.find(claim.owner);
    if (it == holds_.end() || it->second.sure) return;  // it has left, or was granted at once
    if (!granted && !told) return;                      // or may have been, for all we know
    if (granted) {
      it->second.news = answer;
      it->second.since = since;
    }
  }
  if (granted) {
    settle(claim, second_, since, answer);
    handed_over();
  } else {
    forget(claim.owner);
  }
  if (wake_) wake_(claim.owner);
}

std::optional<Answer> SessionStore::known(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  if (turn_ && turn_->owner == owner) return turn_->queued;
  const auto it = holds_.find(owner);
  if (it == holds_.end() || !it->second.news || it->second.lost) return {};
  auto answer = std::exchange(it->second.news, std::nullopt);
  answer->age = BootClock::now() - it->second.since;
  return answer;
}

bool SessionStore::waits_there(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  if (!turn_ || turn_->owner != owner) return false;
  const auto it = holds_.find(owner);
  return it != holds_.end() && !it->second.sure;  // else it was granted at once
}

// With the mutex.
bool SessionStore::comes_behind(const Claim& claim) const {
  return turn_ && !turn_->answered && turn_->owner != claim.owner &&
         std::any_of(claim.parts.begin(), claim.parts.end(),
                     [this](const Part& part) { return part.resource == turn_->name; });
}

void SessionStore::go_on_behind() {
  std::vector<std::function<void()>> behind;
  {
    const std::lock_guard lock(mutex_);
    if (!turn_) return;
    turn_->answered = true;
    behind.swap(turn_->behind);
  }
  for (const auto& ask : behind) ask();
}

// Its session is busy waiting. If that is over by now, it can do the rest.
void SessionStore::leave_the_line(const Claim& claim, Call call, Reply reply) {
  Parameters parameters;
  add_release(parameters, claim, settings_.prefix);
  const bool told = known(claim.owner).has_value();
  ask(main_, lock_verbs().release, parameters, call,
      [this, claim, call, parameters, told, reply = std::move(reply)](const Outcome& outcome) {
        auto answer = to_answer(outcome, claim, settings_.where);
        if (answer.verdict == Verdict::unknown) return reply(std::move(answer));
        if (answer.verdict == Verdict::queued && told) {
          forget(claim.owner);
          return reply(std::move(answer));
        }
        ask(second_, lock_verbs().release, parameters, call,
            [this, claim, reply, answer](const Outcome& then) {
              auto last = to_answer(then, claim, settings_.where);
              if (last.verdict == Verdict::unknown) return reply(std::move(last));
              forget(claim.owner);
              reply(answer);
            });
      });
}

}  // namespace interlock::postgres
