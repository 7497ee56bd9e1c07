// The lock table and a store that has its rules in another language: whatever is asked of both, in any
// order, they answer alike.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/lock_table.hpp"
#include "eventually.hpp"
#include "interlock/interlock.hpp"

namespace interlock::rules_walk {

using namespace std::chrono_literals;
using testing_support::kPatience;

/// In what a store may differ.
struct Liberties {
  bool remembers_places = false;  ///< how many are ahead, it knows from when it last looked
  bool one_shot_leaves = false;   ///< one in line that asks once more, and not to wait, is out
  bool plain = false;             ///< asked for nothing but what it has a short way for
  /// Whoever was taken over from does not come back under its old name. (No client does that.)
  bool taken_over_is_gone = false;
  /// Whoever is in line and has not asked for so long may be forgotten.
  Duration silence = std::chrono::hours(1);
};

inline std::string describe(const Answer& answer, Liberties may = {}) {
  static const char* const kNames[] = {"granted", "queued", "busy", "lost", "unknown"};
  std::string text = kNames[static_cast<int>(answer.verdict)];
  if (answer.verdict == Verdict::queued && !may.remembers_places)
    text += " behind " + std::to_string(answer.place);
  if (answer.why) text += " (" + std::to_string(static_cast<int>(answer.why->errc())) + ")";
  return text;
}

/// Who holds and who waits, in words.
inline std::string describe(const std::vector<ResourceState>& states) {
  std::string text;
  for (const auto& state : states) {
    text += state.resource + " " + std::to_string(state.capacity) + ":";
    std::vector<std::string> holders;
    for (const auto& holder : state.holders)
      holders.push_back(holder.owner.brief() + std::string(to_string(holder.mode)));
    std::sort(holders.begin(), holders.end());
    for (const auto& holder : holders) text += " " + holder;
    text += " |";
    for (const auto& waiter : state.waiters)
      text += " " + waiter.owner.brief() + std::string(to_string(waiter.mode));
    text += "\n";
  }
  return text;
}

class Both {
 public:
  Both(std::unique_ptr<Backend> store, Liberties may) : may_(may), store_(std::move(store)) {
    store_->on_wake([](const Owner&) {});
  }

  /// Whether it was granted.
  bool acquire(const Claim& claim, bool queue) {
    std::vector<Wake> wakes;
    const auto right = table_.acquire(claim, queue, {}, TimePoint{}, wakes);
    compare(right,
            ask([&](Call call, Reply reply) { store_->acquire(claim, queue, call, reply); }));
    return right.verdict == Verdict::granted;
  }
  void renew(const Claim& claim) {
    std::vector<Wake> wakes;
    compare(table_.renew(claim, {}, TimePoint{}, wakes),
            ask([&](Call call, Reply reply) { store_->renew(claim, call, reply); }));
  }
  void release(const Claim& claim) {
    std::vector<Wake> wakes;
    compare(table_.release(claim, 0, TimePoint{}, wakes),
            ask([&](Call call, Reply reply) { store_->release(claim, call, reply); }));
  }
  /// From here on, they need not agree any more.
  [[nodiscard]] bool over() const { return BootClock::now() - begun_ > may_.silence; }
  void look() {
    const auto seen = wait_for<Snapshot>(
        [&](Call call, Report report) { store_->inspect({}, call, std::move(report)); });
    if (over()) return;
    EXPECT_EQ(describe(table_.inspect({}, TimePoint{})), describe(seen.resources));
  }

 private:
  // The store's thread may still be busy with the signal when the answer is there.
  template <class Brought, class Send>
  Brought wait_for(Send send) {
    struct Box {
      Signal signal{*system_clock()};
      std::mutex mutex;
      std::optional<Brought> brought;
    };
    const auto box = std::make_shared<Box>();
    send(Call{.deadline = BootClock::now() + kPatience, .caller_waits = true},
         [box](Brought brought) {
           {
             const std::lock_guard lock(box->mutex);
             box->brought = std::move(brought);
           }
           box->signal.set();
         });
    while (true) {
      {
        const std::lock_guard lock(box->mutex);
        if (box->brought) return std::move(*box->brought);
      }
      store_->lend(box->signal, BootClock::now() + kPatience);
    }
  }
  template <class Send>
  Answer ask(Send send) {
    return wait_for<Answer>(std::move(send));
  }
  void compare(const Answer& table, const Answer& store) const {
    if (over()) return;
    EXPECT_EQ(describe(table, may_), describe(store, may_));
    EXPECT_EQ(table.fences.size(), store.fences.size());
  }

  const Liberties may_;
  const TimePoint begun_ = BootClock::now();
  std::uint64_t fence_ = 0;
  LockTable table_{{.next_fence = [this](const std::string&) { return ++fence_; },
                    .gone = {},
                    .ticket_ttl = std::chrono::hours(1)}};
  std::unique_ptr<Backend> store_;
};

class Asking {
 public:
  /// Every other one asks mostly for what stores have a short way for.
  Asking(std::uint64_t seed, bool plain) : random_(seed), plain_(plain || seed % 2 == 0) {}

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

 private:
  Claim claim_of(std::vector<Part> parts, std::string identity, std::string host) {
    return {
        .owner = Owner::random(),
        .parts = std::move(parts),
        .ttl = 600s,
        .priority = static_cast<std::int32_t>(below(4) == 0 ? 1 : 0),
        .who = std::make_shared<const Who>(Who{
            .label = "walk", .identity = std::move(identity), .host = std::move(host), .pid = 1}),
        .instead_of = {}};
  }

  std::mt19937_64 random_;
  bool plain_;
};

/// Asks both for a hundred things, in an order that the seed decides. `open`: an empty store.
template <class Open>
void walk(Open open, Liberties may = {}) {
  const char* given = std::getenv("INTERLOCK_TEST_SEED");
  const auto first = given != nullptr ? std::stoull(given) : std::random_device{}();
  const auto rounds = given != nullptr ? 1U : 30U;
  for (auto seed = first; seed < first + rounds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(seed));
    Both both(open(), may);
    Asking next(seed, may.plain);
    std::vector<Claim> known;
    for (int step = 0; step < 100 && !testing::Test::HasFailure() && !both.over(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const auto what = next.below(10);
      if (known.empty() || what < 3) {
        known.push_back(next.claim());
        both.acquire(known.back(), next.below(3) > 0);
      } else {
        const auto at = next.below(known.size());
        if (what < 5) {
          const bool queue = next.below(4) > 0;
          both.acquire(known[at], queue || may.one_shot_leaves);
        } else if (what < 6) {
          both.renew(known[at]);
        } else if (what < 7) {
          const auto claim = next.changed(known[at]);
          const bool took_over = both.acquire(claim, next.below(2) == 0);
          if (took_over && may.taken_over_is_gone)
            known[at] = claim;
          else
            known.push_back(claim);
        } else {
          both.release(known[at]);
          if (next.below(2) == 0) known.erase(known.begin() + static_cast<std::ptrdiff_t>(at));
        }
      }
      both.look();
    }
  }
}

}  // namespace interlock::rules_walk
