// What the walk asks for: as the seed decides.
#pragma once

#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "interlock/interlock.hpp"
#include "rules/liberties.hpp"

namespace interlock::rules_walk {

class Asking {
 public:
  /// Every other one asks mostly for what stores have a short way for. `timed`: some TTLs end soon.
  Asking(std::uint64_t seed, bool plain, bool timed)
      : random_(seed), plain_(plain || seed % 2 == 0), timed_(timed) {}

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  Claim claim() {
    std::vector<Part> parts;
    if (plain_) {
      const auto* const name = below(3) > 0 ? "a" : "b";
      parts.push_back(below(2) == 0 ? exclusive(name) : shared(name));
      return claim_of(std::move(parts), "", "host");
    }
    for (std::size_t i = 0, count = 1 + below(2); i < count; ++i) {
      const auto name = std::string(1, static_cast<char>('a' + below(3)));
      const auto kind = below(8);
      // "c" is mostly a semaphore.
      if (name == "c" ? kind > 0 : kind == 0) {
        const auto capacity = kind == 7 ? 2U : 3U;
        parts.push_back(slots(name, 1 + static_cast<std::uint32_t>(below(2)), capacity));
      } else {
        parts.push_back(below(2) == 0 ? exclusive(name) : shared(name));
      }
    }
    try {
      normalize(parts, false);
    } catch (const Error&) {  // one name in two ways
      return claim();
    }
    return claim_of(std::move(parts), below(4) == 0 ? "me" : "", below(8) == 0 ? "" : "host");
  }
  /// The same parts in other modes.
  Claim changed(const Claim& before) {
    auto claim = before;
    claim.owner = Owner::random();
    claim.instead_of = before.owner;
    for (auto& part : claim.parts) {
      if (part.mode != Mode::slots) part.mode = below(2) == 0 ? Mode::exclusive : Mode::shared;
    }
    return claim;
  }
  /// From one step to the next. Never a whole number of TTLs, so that nothing ends just now: a key of Redis
  /// lasts a millisecond longer than others.
  Duration time() {
    static constexpr std::array kTimes{50ms,   450ms,  950ms,   1000ms,
                                       2500ms, 2950ms, 11000ms, 20000ms};
    return kTimes[below(kTimes.size())];
  }

 private:
  Claim claim_of(std::vector<Part> parts, std::string identity, std::string host) {
    const auto owner = Owner::random();
    const auto priority = static_cast<std::int32_t>(below(4) == 0 ? 1 : 0);
    return {
        .owner = owner,
        .parts = std::move(parts),
        .ttl = timed_ ? ttl() : 600s,
        .priority = priority,
        .who = std::make_shared<const Who>(Who{
            .label = "walk", .identity = std::move(identity), .host = std::move(host), .pid = 1}),
        .instead_of = {}};
  }
  Duration ttl() {
    static constexpr std::array kTtls{600000ms, 1507ms, 4007ms, 10007ms};
    return kTtls[below(kTtls.size())];
  }

  std::mt19937_64 random_;
  bool plain_;
  bool timed_;
};

}  // namespace interlock::rules_walk
