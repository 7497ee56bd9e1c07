#include "backends/postgres/greeting.hpp"

#include <cstdio>
#include <memory>

#include "interlock/claim.hpp"

namespace interlock::postgres {

std::int64_t fresh_home(bool waits) {
  const auto home = static_cast<std::int64_t>(Owner::random().low | 3U);
  return waits ? home : home - 1;
}

std::string channel_of(std::int64_t home) {
  char text[40];
  (void)std::snprintf(text, sizeof(text), "interlock_%llx", static_cast<unsigned long long>(home));
  return text;
}

std::string home_lock(std::int64_t home) {
  const auto number = std::to_string(home) + "::bigint";
  return "SELECT pg_advisory_lock(interlock.high(" + number + "), interlock.low(" + number + "))";
}

std::string end_session(std::int64_t home) {
  return "SELECT pg_terminate_backend(interlock.lock_backend(" + std::to_string(home) + "), 1000)";
}

std::function<std::string(const Link::Greeting&)> greeting(
    std::function<std::vector<std::string>(Link&, bool, const Hello&)> then) {
  const auto left = std::make_shared<std::vector<std::string>>();
  return [left, then = std::move(then)](const Link::Greeting& now) -> std::string {
    if (now.step == 0) *left = {hello_sql()};
    if (now.step == 1) {
      const auto hello = read_hello(*now.answer);
      if (hello.schema == kNoSchema && !now.makes_schema) {
        now.link.set_empty(why_unmakeable(*now.answer, now.link.plan().name));
        return {};
      }
      *left = then(now.link, hello.process != now.process, hello);
      if (hello.schema == kNoSchema) {
        if (const auto why = why_unmakeable(*now.answer, now.link.plan().name)) throw Error(*why);
        left->insert(left->begin(), make_schema_sql());
      }
    }
    if (left->empty()) return {};
    // A message is one transaction, also through a pooler, and the server analyses a statement when those before it
    // are done.
    auto next = std::string("SET LOCAL ") + kOwnPath + "; " + left->front();
    left->erase(left->begin());
    return next;
  };
}

// The server gives up before we do.
std::string session_settings(Duration call_timeout) {
  const auto timeout =
      std::to_string(std::chrono::ceil<std::chrono::milliseconds>(call_timeout * 3 / 4).count());
  return std::string("SET ") + kOwnPath + "; SET lock_timeout = " + timeout +
         "; SET default_transaction_isolation = 'read committed'; SET idle_session_timeout = 0"
         // Most rows that a table of locks has had are gone, and the planner can't know.
         "; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"
         "; SET plan_cache_mode = force_generic_plan"
         "; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2"
         "; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000"
         // Not every system has it.
         "; DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '1000', false);"
         " EXCEPTION WHEN OTHERS THEN NULL; END $$"
         // A fence that was given out must not come again after a crash.
         "; DO $$ BEGIN IF current_setting('synchronous_commit') = 'off' THEN"
         " PERFORM set_config('synchronous_commit', 'on', false); END IF; END $$";
}

}  // namespace interlock::postgres
