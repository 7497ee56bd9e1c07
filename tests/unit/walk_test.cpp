// A seeded random walk: the machines of several clients against the lock table, over a network that
// delays, reorders, loses and duplicates, with clocks that jump and users who cancel. After every
// step the contract's invariants are checked.
//
//     INTERLOCK_TEST_SEED=n    repeat one walk
//     INTERLOCK_TEST_STEPS=n   steps in all (a million)
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "core/acquisition.hpp"
#include "core/lease_machine.hpp"
#include "core/lock_table.hpp"

using namespace interlock;
using namespace interlock::core;
using namespace std::chrono_literals;

namespace {

constexpr Duration kDrift = 2ms;

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed), users_(4) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    settle();
  }

  int grants = 0;
  int losses = 0;
  int timeouts = 0;

 private:
  enum class Verb { acquire, renew, release };
  struct User {
    std::optional<Acquisition> asking;
    std::optional<LeaseMachine> lease;
    Claim claim;
    std::vector<Fence> fences;
    bool one_shot = false;
    bool told_lost = false;
  };
  struct Message {
    Verb verb;
    std::size_t user;
    Claim claim;
    bool queue = false;
    int call = 0;
    TimePoint sent;
    std::optional<Answer> answer;  // on its way back
  };

  std::size_t any(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }

  Claim random_claim() {
    std::vector<Part> parts;
    const auto count = 1 + any(2);
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = std::string(1, static_cast<char>('a' + any(2)));
      parts.push_back({.resource = name, .mode = chance(0.6) ? Mode::exclusive : Mode::shared});
    }
    if (chance(0.3)) {
      parts.push_back({.resource = "pool",
                       .mode = Mode::slots,
                       .slots = static_cast<std::uint32_t>(1 + any(2)),
                       .capacity = 2});
    }
    normalize(parts, true);
    return {.owner = {seq_++, random_()},
            .parts = std::move(parts),
            .ttl = std::chrono::milliseconds(50 + any(400)),
            .priority = static_cast<std::int32_t>(any(3)),
            .who = who_};
  }

  void begin(std::size_t index) {
    User& user = users_[index];
    user = {};
    user.claim = random_claim();
    user.one_shot = chance(0.2);
    Acquisition::Plan plan{.ttl = user.claim.ttl, .drift = kDrift, .one_shot = user.one_shot};
    if (!user.one_shot && chance(0.5)) plan.deadline = now_ + std::chrono::milliseconds(any(600));
    plan.heartbeat = 50ms;
    plan.call_timeout = 40ms;
    plan.retry = {.attempts = 6, .first = 5ms, .max = 40ms};
    plan.seed = random_();
    user.asking.emplace(plan);
    perform(index, user.asking->start(now_));
  }

  void perform(std::size_t index, const Acquisition::Step& step) {
    User& user = users_[index];
    if (step.ask) {
      send({.verb = Verb::acquire,
            .user = index,
            .claim = user.claim,
            .queue = user.asking->queue(),
            .call = step.call,
            .sent = now_,
            .answer = {}});
    }
    if (step.forget) forget(index, user.claim);
    if (!user.asking || !user.asking->done()) return;
    if (user.asking->outcome() == Outcome::granted) {
      if (user.lease) return;
      ++grants;
      user.fences = user.asking->fences();
      user.lease.emplace(LeaseMachine::Plan{.ttl = user.claim.ttl,
                                            .drift = [](Duration) { return kDrift; },
                                            .call_timeout = 40ms},
                         user.asking->sent(), now_);
    } else if (user.asking->outcome() == Outcome::timed_out) {
      ++timeouts;
    }
  }

  void perform(std::size_t index, const LeaseMachine::Step& step) {
    User& user = users_[index];
    if (step.renew)
      send({.verb = Verb::renew, .user = index, .claim = user.claim, .sent = now_, .answer = {}});
    if (step.forget) forget(index, user.claim);
    if (step.lose) {
      EXPECT_FALSE(user.told_lost) << "told twice";
      user.told_lost = true;
      ++losses;
    }
  }

  void forget(std::size_t index, const Claim& claim) {
    send({.verb = Verb::release, .user = index, .claim = claim, .sent = now_, .answer = {}});
  }

  void send(Message message) {
    if (chance(0.05)) return;  // lost on the way there
    if (chance(0.05)) network_.push_back(message);
    network_.push_back(std::move(message));
  }

  void step() {
    const auto what = any(100);
    if (what < 50 && !network_.empty())
      return deliver(any(std::min<std::size_t>(network_.size(), 6)));
    if (what < 75) {
      now_ +=
          chance(0.02) ? std::chrono::milliseconds(any(700)) : std::chrono::milliseconds(any(8));
      // Ticks may come late: the thread was busy.
      for (std::size_t i = 0; i < users_.size(); ++i) {
        if (chance(0.9)) tick(i);
      }
      return;
    }
    const auto index = any(users_.size());
    User& user = users_[index];
    const bool idle =
        !user.asking ||
        (user.asking->done() && (!user.lease || user.lease->state(now_) != LeaseState::held));
    if (idle) return begin(index);
    if (!user.asking->done()) {
      if (what < 78) perform(index, user.asking->cancel(now_));
      if (what > 90) perform(index, user.asking->wake(now_));
    } else if (what < 85) {
      user.lease->end(LeaseState::released);
      forget(index, user.claim);
    } else if (what > 97) {
      perform(index, user.lease->hurry(now_));
    }
  }

  void tick(std::size_t i) {
    User& user = users_[i];
    if (user.asking && !user.asking->done() && user.asking->next_tick() <= now_)
      perform(i, user.asking->tick(now_));
    if (user.lease && user.lease->next_tick() <= now_) perform(i, user.lease->tick(now_));
  }

  void deliver(std::size_t which) {
    auto message = std::move(network_[which]);
    network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(which));
    if (!message.answer) {
      std::vector<Wake> wakes;
      switch (message.verb) {
        case Verb::acquire:
          message.answer =
              table_.acquire(message.claim, message.queue, {.home = message.user}, now_, wakes);
          break;
        case Verb::renew:
          message.answer = table_.renew(message.claim, {.home = message.user}, now_, wakes);
          break;
        case Verb::release:
          message.answer = table_.release(message.claim, message.user, now_, wakes);
          break;
      }
      if (message.verb == Verb::acquire && message.answer->verdict == Verdict::granted)
        note_fences(message);
      for (const auto& wake : wakes) {
        User& user = users_[wake.home];
        if (chance(0.8) && user.claim.owner == wake.owner && user.asking)
          perform(wake.home, user.asking->wake(now_));
      }
      if (!chance(0.05)) send(std::move(message));
      return;
    }
    User& user = users_[message.user];
    if (user.claim.owner != message.claim.owner) {
      // The user has moved on. Whoever drives the machine keeps it until its last reply.
      const bool left =
          message.verb == Verb::acquire && (message.answer->verdict == Verdict::granted ||
                                            message.answer->verdict == Verdict::queued);
      if (left) forget(message.user, message.claim);
      return;
    }
    if (message.verb == Verb::acquire) {
      perform(message.user, user.asking->reply(now_, message.call, message.sent, *message.answer));
    } else if (message.verb == Verb::renew && user.lease) {
      perform(message.user,
              user.lease->renewed(now_, message.sent, message.claim.ttl, message.answer->verdict));
    }
  }

  // Rule 5: a grant is newer than every exclusive one before it.
  void note_fences(const Message& message) {
    for (std::size_t i = 0; i < message.claim.parts.size(); ++i) {
      auto& last = fences_[message.claim.parts[i].resource];
      const auto fence = message.answer->fences[i].value;
      if (last.second == message.claim.owner) continue;  // asked again
      if (fence <= last.first &&
          granted_.contains({message.claim.owner, message.claim.parts[i].resource}))
        continue;
      EXPECT_GT(fence, last.first);
      last = {fence, message.claim.owner};
      granted_.insert({message.claim.owner, message.claim.parts[i].resource});
    }
  }

  bool holds(const User& user) const {
    return user.lease && user.lease->state(now_) == LeaseState::held;
  }

  void check() {
    std::map<std::string, std::vector<const Part*>> held;
    for (const auto& user : users_) {
      if (!holds(user)) continue;
      EXPECT_EQ(user.asking->outcome(), Outcome::granted);
      EXPECT_FALSE(user.told_lost) << "rule 7: no way back";
      for (const auto& part : user.claim.parts) {
        held[part.resource].push_back(&part);
        // Rules 6 and 8: what we believe, the store grants, and at least as long.
        const auto row = table_.rows().find(part.resource);
        ASSERT_NE(row, table_.rows().end());
        const auto& holders = row->second.holders;
        const auto mine = std::find_if(holders.begin(), holders.end(), [&](const Record& r) {
          return r.owner == user.claim.owner;
        });
        ASSERT_NE(mine, holders.end()) << "a lease that the store knows nothing of";
        ASSERT_GE(mine->expires, user.lease->valid_until());
      }
    }
    for (const auto& [resource, parts] : held) {  // rule 1
      std::uint32_t slots = 0;
      int exclusive = 0;
      for (const auto* part : parts) {
        slots += part->mode == Mode::slots ? part->slots : 0;
        exclusive += part->mode == Mode::exclusive ? 1 : 0;
      }
      ASSERT_LE(slots, 2U) << resource;
      ASSERT_TRUE(exclusive == 0 || parts.size() == 1) << resource;
    }
    for (const auto& [resource, row] : table_.rows()) {  // rule 3: a one-shot never queues
      for (const auto& [ticket, waiter] : row.queue) {
        for (const auto& user : users_) {
          ASSERT_FALSE(user.one_shot && user.claim.owner == waiter.owner);
        }
      }
    }
  }

  // Everybody stops: then nothing may be left behind.
  void settle() {
    for (std::size_t i = 0; i < users_.size(); ++i) {
      User& user = users_[i];
      if (user.asking && !user.asking->done()) perform(i, user.asking->cancel(now_));
      if (user.lease) user.lease->end(LeaseState::released);
    }
    while (!network_.empty()) deliver(0);
    now_ += 5s;  // longer than every TTL and ticket
    std::vector<Wake> wakes;
    table_.sweep(now_, wakes);
    EXPECT_TRUE(table_.rows().empty());
  }

  std::mt19937_64 random_;
  std::vector<User> users_;
  std::vector<Message> network_;
  TimePoint now_{1h};
  std::uint64_t last_fence_ = 0;
  std::uint64_t seq_ = 1;
  std::shared_ptr<const Who> who_ = std::make_shared<const Who>();
  LockTable table_{{.next_fence = [this](const std::string&) { return ++last_fence_; },
                    .gone = {},
                    .ticket_ttl = 150ms}};
  std::map<std::string, std::pair<std::uint64_t, Owner>> fences_;
  std::set<std::pair<Owner, std::string>> granted_;
};

std::uint64_t number(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(RandomWalk, KeepsTheContractForAMillionSteps) {
  constexpr int kStepsPerSeed = 10'000;
  const auto steps = number("INTERLOCK_TEST_STEPS", 1'000'000);
  const auto only = number("INTERLOCK_TEST_SEED", 0);
  int grants = 0;
  int losses = 0;
  int timeouts = 0;
  for (std::uint64_t seed = only != 0 ? only : 1;
       seed <= (only != 0 ? only : steps / kStepsPerSeed); ++seed) {
    SCOPED_TRACE("repeat with INTERLOCK_TEST_SEED=" + std::to_string(seed));
    Walk walk(seed);
    walk.run(kStepsPerSeed);
    grants += walk.grants;
    losses += walk.losses;
    timeouts += walk.timeouts;
    if (HasFailure()) return;
  }
  // A walk in which nothing happens proves nothing.
  if (only == 0) {
    EXPECT_GT(grants, static_cast<int>(steps / 200));
    EXPECT_GT(losses, 100);
    EXPECT_GT(timeouts, 100);
  }
}

}  // namespace
