// What tests of Redlock's machines share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis::testing_support {

using Kind = Message::Kind;
using Said = Vote::Said;
using Way = Steps::Way;
using namespace std::chrono_literals;

inline RedlockNodes three_nodes() { return {.names = {"one", "two", "three"}, .where = "all"}; }

inline ClaimPtr claim(std::uint64_t owner = 7) {
  return std::make_shared<const Claim>(Claim{.owner = {.high = 0, .low = owner},
                                             .parts = {{.resource = "r"}},
                                             .ttl = 4s,
                                             .who = std::make_shared<const Who>()});
}

inline Vote granted(std::uint64_t hold, std::uint64_t number) {
  return {.said = Said::granted, .hold = hold, .numbers = {number}};
}
inline Vote queued(std::uint64_t ticket, std::uint32_t place = 0) {
  return {.said = Said::queued, .ticket = ticket, .place = place, .look = 1s};
}
inline Vote says(Said said) { return {.said = said}; }
inline Vote fails(const std::string& why = "gone", bool asked = true) {
  return Vote::failed({Errc::unreachable, why, {.resource = {}, .node = {}, .maybe_held = asked}},
                      asked);
}

/// "ask 0 acquire, tell 1 confirm": what is sent, in this order.
inline std::string sent(const Steps& steps) {
  static const char* const kWays[] = {"ask", "tell", "insist"};
  static const char* const kKinds[] = {"acquire", "confirm", "yield", "renew", "heal",
                                       "release", "undo",    "look",  "wait",  "repair"};
  std::string text;
  for (const auto& send : steps.sends) {
    text += (text.empty() ? "" : ", ") + std::string(kWays[static_cast<int>(send.way)]) + " " +
            std::to_string(send.node) + " " + kKinds[static_cast<int>(send.message.kind)];
  }
  return text;
}

}  // namespace interlock::redis::testing_support
