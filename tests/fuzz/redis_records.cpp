// What our scripts answer, with records that anybody with a key may have written: one RESP reply.
#include "backends/redis/reader.hpp"
#include "backends/redis/redlock_words.hpp"
#include "backends/redis/scripts.hpp"
#include "fuzz.hpp"

namespace {

namespace redis = interlock::redis;
using interlock::Duration;

void inspected(const redisReply& reply) {
  const auto state = fuzz::accepted([&] { return redis::to_state(reply, "name", true); });
  if (!state) return;
  for (const auto* entries : {&state->holders, &state->waiters}) {
    for (const auto& entry : *entries) {
      fuzz::require(entry.age >= Duration::zero() && entry.remaining >= Duration::zero(),
                    "times are not negative");
    }
  }
}

}  // namespace

void fuzz::run(std::string_view input) {
  static const interlock::Claim claim{
      .owner = {.high = 1, .low = 2},
      .parts = {{.resource = "a", .mode = interlock::Mode::slots, .slots = 1, .capacity = 2},
                {.resource = "b"}},
      .ttl = std::chrono::seconds(30),
      .who = std::make_shared<const interlock::Who>()};
  redis::Reader reader;
  reader.feed(input);
  auto reply = accepted([&] { return reader.next(); });
  if (!reply || !*reply) return;
  const redis::Outcome outcome{.reply = std::move(**reply)};
  inspected(*outcome.reply);
  const auto answer = redis::acquire_answer(*outcome.reply, claim, "redis://node");
  require(answer.verdict != interlock::Verdict::unknown || answer.why, "a failure says why");
  require(!answer.look_again || *answer.look_again > -std::chrono::hours(24 * 365 * 100),
          "when to look again is a time");
  (void)redis::release_answer(*outcome.reply);
  using Kind = redis::Message::Kind;
  for (const auto kind : {Kind::acquire, Kind::confirm, Kind::renew, Kind::release, Kind::look}) {
    const redis::Message asked{.kind = kind,
                               .claim = std::make_shared<const interlock::Claim>(claim)};
    (void)redis::read_vote(asked, outcome, "redis://node").describe();
  }
}
