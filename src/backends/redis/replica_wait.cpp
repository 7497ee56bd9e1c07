#include "backends/redis/replica_wait.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

namespace {

using std::chrono::milliseconds;

// A grant of a short TTL may come while others wait, and has to wait for their turn to end.
constexpr Duration kLongestTurn = milliseconds(100);

std::optional<Error> failure_of(const Outcome& outcome, const std::string& node) {
  if (!outcome.reply) return outcome.failure;
  if (is_error(*outcome.reply)) return to_error(text_of(*outcome.reply), node);
  return std::nullopt;
}

}  // namespace

void ReplicaWait::confirm(const Claim& claim, Words renewal, Duration patience, Call how,
                          Then then) {
  server_.run_apart(
      Scripts::all().renew, std::move(renewal), how,
      [this, claim, patience, how, then = std::move(then)](const Outcome& outcome) {
        auto why = failure_of(outcome, server_.name());
        if (!why &&
            acquire_answer(*outcome.reply, claim, server_.name()).verdict != Verdict::granted)
          why.emplace(Errc::unreachable, "it was gone before replicas could confirm it");
        if (why) return then(0, why);
        {
          const std::lock_guard lock(mutex_);
          waiting_.push_back({.connection = outcome.connection,
                              .until = BootClock::now() + patience,
                              .how = how,
                              .then = then});
        }
        next();
      });
}

void ReplicaWait::next() {
  std::vector<Grant> grants;
  {
    const std::lock_guard lock(mutex_);
    if (under_way_ || waiting_.empty()) return;
    under_way_ = true;
    grants.swap(waiting_);
  }
  const auto now = BootClock::now();
  auto turn = std::min(kLongestTurn, server_.call_timeout() / 2);
  Call how{.deadline = now, .caller_waits = true};
  for (const auto& grant : grants) {
    turn = std::min(turn, grant.until - now);
    how.deadline = std::max(how.deadline, grant.how.deadline);
    how.caller_waits = how.caller_waits && grant.how.caller_waits;
  }
  const auto time = std::max<std::int64_t>(1, turn / milliseconds(1));
  server_.send_apart(
      command({"WAIT", std::to_string(wanted_), std::to_string(time)}), how,
      [this, grants = std::move(grants)](const Outcome& outcome) { told(grants, outcome); });
}

void ReplicaWait::told(std::vector<Grant> grants, const Outcome& outcome) {
  const auto why = failure_of(outcome, server_.name());
  const auto got = why ? 0 : number_of(*outcome.reply);
  const auto now = BootClock::now();
  std::vector<Grant> over;
  {
    const std::lock_guard lock(mutex_);
    under_way_ = false;
    for (auto& grant : grants) {
      const bool is_over =
          why || got >= wanted_ || now >= grant.until || grant.connection != outcome.connection;
      (is_over ? over : waiting_).push_back(std::move(grant));
    }
  }
  next();
  for (const auto& grant : over) {
    if (!why && grant.connection != outcome.connection) {
      grant.then(0, Error(Errc::unreachable, "the connection was lost before replicas confirmed it",
                          {.resource = {}, .node = server_.name(), .maybe_held = true}));
    } else {
      grant.then(got, why);
    }
  }
}

}  // namespace interlock::redis
