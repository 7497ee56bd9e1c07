// Answers of a Redis server that make no sense, and records that others have written into our keys.
#include <gtest/gtest.h>

#include "backends/redis/reader.hpp"
#include "backends/redis/redlock_words.hpp"
#include "backends/redis/scripts.hpp"

using namespace interlock;
using namespace interlock::redis;

namespace {

const std::string kOwner = "837220a737511dd5e8698ffb04313409";

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string list(const std::vector<std::string>& replies) {
  auto all = "*" + std::to_string(replies.size()) + "\r\n";
  for (const auto& reply : replies) all += reply;
  return all;
}

Response reply(const std::string& bytes) {
  Reader reader;
  reader.feed(bytes);
  auto got = reader.next();
  EXPECT_TRUE(got) << bytes;
  return std::move(*got);
}

std::string record(const std::string& spec) {
  return "1795104308115413\n" + kOwner + "\n0P1:\n" + spec + "\n0\nchannel\n\nlabel\nhost\n0\n1:9";
}

// As inspect.lua says it: a holder, and one who waits.
ResourceState state_of(const std::string& waiter, const std::string& left, const std::string& now) {
  const auto nothing = list({});
  return to_state(*reply(list({bulk(kOwner), bulk(left), bulk(record("e1:0:0")), nothing, nothing,
                               list({bulk(waiter)}), bulk(now)})),
                  "name", false);
}

const Claim kClaim{.owner = {.high = 1, .low = 2},
                   .parts = {{.resource = "name"}},
                   .ttl = std::chrono::seconds(30),
                   .who = std::make_shared<const Who>()};

TEST(RedisRecords, OneWithoutItsColonsIsNone) {
  EXPECT_TRUE(state_of("9\n1\n" + record("eeeeee"), "100", "1").waiters.empty());
  EXPECT_EQ(state_of("9\n1\n" + record("e1:0:0"), "100", "1").waiters.size(), 1U);
}

TEST(RedisRecords, TimesThatNobodyHasAreLongAndNotNegative) {
  const std::string far = "9223372036854775807";
  for (const auto& number : {far, "-" + far, std::string("1e300"), std::string("-1e300")}) {
    for (const auto& now : {std::string("0"), number}) {
      SCOPED_TRACE(number + " at " + now);
      const auto state = state_of(number + "\n1\n" + record("e1:0:0"), number, now);
      for (const auto* entries : {&state.holders, &state.waiters}) {
        for (const auto& entry : *entries) {
          EXPECT_GT(entry.remaining, Duration::zero());
          EXPECT_GE(entry.age, Duration::zero());
        }
      }
    }
  }
  EXPECT_EQ(state_of(far + "\n1\n" + record("e1:0:0"), "1", "0").waiters.size(), 1U);
}

TEST(RedisAnswers, NumbersAreWholeAndWithinBounds) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53U;
  EXPECT_EQ(number_of(*reply(bulk("12.9"))), 12);
  EXPECT_EQ(number_of(*reply(bulk("1e300"))), kMost);
  EXPECT_EQ(number_of(*reply(bulk("-inf"))), -kMost);
  EXPECT_EQ(number_of(*reply(bulk("nan"))), 0);
  EXPECT_EQ(number_of(*reply(":9223372036854775807\r\n")), kMost);
}

TEST(RedisAnswers, TheTimeToLookAgainIsNotNegative) {
  const auto far = bulk("9223372036854775807");
  const auto answer = acquire_answer(*reply(list({bulk("queued"), bulk("1"), far})), kClaim, "");
  EXPECT_EQ(answer.verdict, Verdict::queued);
  EXPECT_GT(answer.look_again, Duration::zero());
  const Message asks{.kind = Message::Kind::acquire,
                     .claim = std::make_shared<const Claim>(kClaim)};
  const auto vote =
      read_vote(asks, {.reply = reply(list({bulk("queued"), bulk("1"), far, bulk("1")}))}, "");
  EXPECT_GT(vote.look, Duration::zero());
  const auto fresh = read_vote(asks, {.reply = reply(list({bulk("new"), far}))}, "");
  EXPECT_GT(fresh.counts, Duration::zero());
}

TEST(RedisAnswers, ANodeThatRepliesWithAnErrorHasReplied) {
  const Message asks{.kind = Message::Kind::acquire,
                     .claim = std::make_shared<const Claim>(kClaim)};
  for (const auto* said : {"-LOADING Redis is loading the dataset in memory\r\n", "+hello\r\n"}) {
    const auto vote = read_vote(asks, {.reply = reply(said)}, "");
    EXPECT_EQ(vote.said, Vote::Said::failed);
    EXPECT_TRUE(vote.replied && vote.asked);
  }
  const Error away(Errc::unreachable, "no connection");
  EXPECT_FALSE(read_vote(asks, {.reply = {}, .failure = away}, "").replied);
}

TEST(RedisAnswers, AUseWithoutItsModeIsAnErrorAndNoCrash) {
  const auto words = list({bulk("wrong"), bulk("1"), bulk(""), bulk("1"), bulk("")});
  EXPECT_EQ(acquire_answer(*reply(words), kClaim, "").verdict, Verdict::unknown);
}

}  // namespace
