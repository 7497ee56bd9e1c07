// The lock table and a store, asked the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "rules/model.hpp"

namespace interlock::rules_walk {

using testing_support::eventually;
using testing_support::kPatience;

/// Whom the store has woken.
class Woken {
 public:
  void add(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    owners_.insert(owner);
  }
  [[nodiscard]] bool has(const Owners& all) const {
    const std::lock_guard lock(mutex_);
    return std::includes(owners_.begin(), owners_.end(), all.begin(), all.end());
  }
  void forget(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    owners_.erase(owner);
  }
  [[nodiscard]] Owners take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(owners_, {});
  }

 private:
  mutable std::mutex mutex_;
  Owners owners_;
};

class Both {
 public:
  /// `moves`: moves the store's time, which stands still otherwise. None: it has its own.
  using Moves = std::function<void(Duration)>;
  Both(std::unique_ptr<Backend> store, const Liberties& may, Moves moves)
      : may_(may), moves_(std::move(moves)), model_(may), store_(std::move(store)) {
    store_->on_wake([woken = woken_](const Owner& owner) { woken->add(owner); });
    // The first waiter of a client asks twice, as it was not listened to yet.
    drain();
    drain();
    (void)woken_->take();
  }

  /// Whether it was granted.
  bool acquire(const Claim& claim, bool queue) {
    said(std::string(queue ? "acquire " : "try ") + describe(claim));
    const auto right = model_.acquire(claim, queue);
    const auto found =
        ask([&](Call call, Reply reply) { store_->acquire(claim, queue, call, reply); });
    compare(right, found);
    if (over()) return false;
    if (right.verdict == Verdict::granted) compare_fences(claim, right, found);
    compare_wakes();  // first, as those who are told have less time left
    if (right.verdict == Verdict::queued && found.verdict == Verdict::queued) {
      compare_place(right, found);
      compare_look(claim, found);
      model_.will_look(claim.owner, found.look_again);
    }
    return right.verdict == Verdict::granted;
  }
  void renew(const Claim& claim) {
    said("renew " + describe(claim));
    const auto right = model_.renew(claim);
    const auto found = ask([&](Call call, Reply reply) { store_->renew(claim, call, reply); });
    compare(right, found);
    if (right.verdict == Verdict::granted) compare_fences(claim, right, found);
    compare_wakes();
  }
  void release(const Claim& claim) {
    said("release " + describe(claim));
    const auto right = model_.release(claim);
    compare(right, ask([&](Call call, Reply reply) { store_->release(claim, call, reply); }));
    compare_wakes();
  }
  void pass(Duration time) {
    said("time passes: " + describe(time));
    model_.pass(time);
    moves_(time);
    look();
  }
  [[nodiscard]] const Model& model() const noexcept { return model_; }
  [[nodiscard]] bool moves() const noexcept { return moves_ != nullptr; }
  /// From here on, they need not agree any more.
  [[nodiscard]] bool over() const { return BootClock::now() - begun_ > may_.silence; }
  [[nodiscard]] const std::string& story() const noexcept { return story_; }

  void look() {
    auto seen = wait_for<Snapshot>(
        [&](Call call, Report report) { store_->inspect({}, call, std::move(report)); });
    if (over()) return;
    std::erase_if(seen.resources, [](const auto& state) { return state.resource == kBell; });
    EXPECT_EQ(describe(model_.inspect(), moves()), describe(seen.resources, moves()));
    for (const auto& claim : model_.sleep_through_it())
      ADD_FAILURE() << "nobody has told " << describe(claim) << " that it could have it";
  }

 private:
  static constexpr auto kBell = "the end of the wake-ups";

  void said(const std::string& what) { story_ += what + "\n"; }

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

  void compare(const Answer& right, const Answer& found) {
    said("  " + describe(right));
    if (over()) return;
    EXPECT_EQ(describe(right), describe(found));
    EXPECT_EQ(right.fences.size(), found.fences.size());
  }
  void compare_place(const Answer& right, const Answer& found) const {
    if (may_.remembers_places) return;
    EXPECT_GE(found.place, right.place);
    EXPECT_LE(found.place, right.place + model_.forgotten());
  }

  // The time of a store that can't be moved has gone on since the walk began; that of the table has not.
  void compare_look(const Claim& claim, const Answer& found) {
    constexpr Duration kRounded = 2ms;
    if (may_.looks_in_its_own_way) {
      // Behind holders alone, at the latest when the last of them ends.
      const auto last = model_.last_end(claim);
      const auto looks = found.look_again.value_or(Duration::max());
      if (found.place == 0 && last != Duration::zero() && looks > last + kRounded)
        ADD_FAILURE() << "it looks again in " << describe(looks) << ", and the last holder ends in "
                      << describe(last);
      return;
    }
    const auto elapsed = moves() ? Duration::zero() : BootClock::now() - begun_;
    auto expected = model_.look(claim);
    if (may_.first_looks && found.place == 0) expected = std::min(expected, *may_.first_looks);
    if (may_.second_looks && found.place == 1) expected = std::min(expected, *may_.second_looks);
    const auto actual = found.look_again.value_or(Duration::max());
    const bool late = actual > expected && actual - expected > kRounded;
    const auto least =
        may_.looks_at_any_holder ? std::min(expected, model_.first_end(claim)) : expected;
    const bool early = actual < least && least - actual > kRounded + elapsed;
    if (late || early)
      ADD_FAILURE() << "it looks again in " << describe(actual) << ", and not in "
                    << describe(expected);
  }

  // The numbers are the store's own; but the same fence is the same, and a later one is larger.
  void compare_fences(const Claim& claim, const Answer& right, const Answer& found) {
    if (right.fences.size() != found.fences.size() || over()) return;
    for (std::size_t i = 0; i < right.fences.size(); ++i) {
      auto& fences = fences_[claim.parts[i].resource];
      const auto [at, fresh] = fences.emplace(right.fences[i].value, found.fences[i].value);
      EXPECT_EQ(at->second, found.fences[i].value) << "it goes on, with another fence";
      if (fresh && at != fences.begin() && at->second <= std::prev(at)->second)
        ADD_FAILURE() << "a fence that does not rise: " << at->second;
    }
  }

  void compare_wakes() {
    if (over()) return;
    const auto& must = model_.must_wake();
    if (may_.wakes_more) {
      EXPECT_TRUE(eventually([&] { return woken_->has(must); }))
          << "it did not wake " << names(must);
      return model_.told(woken_->take());
    }
    drain();
    const auto woken = woken_->take();
    if (!woken.empty()) said("  wakes " + names(woken));
    const auto may = model_.may_wake();
    if (!std::includes(woken.begin(), woken.end(), must.begin(), must.end()))
      ADD_FAILURE() << "it did not wake all of " << names(must);
    if (!std::includes(may.begin(), may.end(), woken.begin(), woken.end()))
      ADD_FAILURE() << "it may wake " << names(may) << ", and woke " << names(woken);
    model_.told(woken);
  }
  static std::string names(const Owners& owners) {
    std::string text;
    for (const auto& owner : owners) text += (text.empty() ? "" : " ") + owner.brief();
    return text.empty() ? "nobody" : text;
  }

  // A wake-up that comes after all others, as the store sends them in order: of one that waits for the bell.
  void drain() {
    const auto bell = [this](bool queue) {
      Claim claim{.owner = Owner::random(), .parts = {exclusive(kBell)}, .ttl = 600s};
      claim.who = std::make_shared<const Who>(Who{.label = "bell", .host = "host", .pid = 1});
      const auto answer =
          ask([&](Call call, Reply reply) { store_->acquire(claim, queue, call, reply); });
      EXPECT_EQ(answer.verdict, queue ? Verdict::queued : Verdict::granted);
      return claim;
    };
    const auto release = [this](const Claim& claim) {
      (void)ask([&](Call call, Reply reply) { store_->release(claim, call, reply); });
    };
    const auto holds = bell(false);
    const auto waits = bell(true);
    release(holds);
    EXPECT_TRUE(eventually([&] { return woken_->has({waits.owner}); })) << "no bell";
    release(waits);
    woken_->forget(waits.owner);
  }

  const Liberties may_;
  const Moves moves_;
  const TimePoint begun_ = BootClock::now();
  std::string story_;
  Model model_;
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> fences_;
  std::shared_ptr<Woken> woken_ = std::make_shared<Woken>();
  std::unique_ptr<Backend> store_;
};

}  // namespace interlock::rules_walk
