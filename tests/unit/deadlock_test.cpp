#include "interlock/deadlock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <iostream>
#include <random>
#include <set>

#include "interlock/interlock.hpp"
#include "waiting.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::Waiting;

Entry entry(std::uint64_t owner, std::string actor, Mode mode = Mode::exclusive,
            Duration age = 1s) {
  Entry made;
  made.owner = {1, owner};
  made.who.actor = std::move(actor);
  made.who.host = "here";
  made.mode = mode;
  made.age = age;
  return made;
}

TEST(Deadlock, TwoWhoWaitForEachOther) {
  const Snapshot snapshot{.resources = {
                              {.resource = "a",
                               .holders = {entry(1, "ann")},
                               .waiters = {entry(4, "bob", Mode::exclusive, 2s)}},
                              {.resource = "b",
                               .holders = {entry(2, "bob")},
                               .waiters = {entry(3, "ann", Mode::exclusive, 3s)}},
                          }};
  const auto found = find_deadlocks(snapshot);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].members.size(), 2U);
  EXPECT_EQ(found[0].members[found[0].youngest].who.actor, "bob");
  const auto text = found[0].describe();
  EXPECT_NE(text.find("'ann' (here, process 0) has waited 3s for b, which is held by 'bob'"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("'bob' (here, process 0) has waited 2s for a, which is held by 'ann'"),
            std::string::npos)
      << text;
  EXPECT_TRUE(found[0].same_as(find_deadlocks(snapshot)[0]));
  auto later = snapshot;
  later.resources[0].waiters[0].owner = {1, 9};  // bob gave up, and came again
  EXPECT_FALSE(found[0].same_as(find_deadlocks(later)[0]));
}

TEST(Deadlock, NobodyIsAccusedWhoseActorIsNotKnown) {
  const Snapshot snapshot{
      .resources = {
          {.resource = "a", .holders = {entry(1, "ann")}, .waiters = {entry(4, "")}},
          {.resource = "b", .holders = {entry(2, "")}, .waiters = {entry(3, "ann")}},
      }};
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
}

// Nobody knows how many things are done under an identity at a time.
TEST(Deadlock, AnIdentityIsNoActor) {
  auto holder = entry(1, "");
  auto waiter = entry(2, "");
  auto other_holder = entry(3, "");
  auto other_waiter = entry(4, "");
  holder.who.identity = waiter.who.identity = "one";
  other_holder.who.identity = other_waiter.who.identity = "two";
  const Snapshot snapshot{
      .resources = {{.resource = "a", .holders = {holder}, .waiters = {other_waiter}},
                    {.resource = "b", .holders = {other_holder}, .waiters = {waiter}}}};
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
}

TEST(Deadlock, OneWhoWaitsForItself) {
  const Snapshot snapshot{
      .resources = {{.resource = "a", .holders = {entry(1, "ann")}, .waiters = {entry(2, "ann")}}}};
  const auto found = find_deadlocks(snapshot);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].describe().find("held by itself"), std::string::npos) << found[0].describe();
}

TEST(Deadlock, AReaderThatBecomesAWriterDoesNotWaitForItself) {
  const Snapshot snapshot{
      .resources = {{.resource = "a",
                     .holders = {entry(1, "ann", Mode::shared), entry(2, "", Mode::shared)},
                     .waiters = {entry(3, "ann")}}}};
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
}

// It holds something below, and so it is in its own way for good.
TEST(Deadlock, OneWhoHoldsALeafAndWaitsForTheTree) {
  auto above = entry(1, "ann", Mode::shared);
  above.ancestor = true;
  const Snapshot snapshot{
      .resources = {{.resource = "t", .holders = {above}, .waiters = {entry(2, "ann")}},
                    {.resource = "t/1", .holders = {entry(1, "ann")}}}};
  const auto found = find_deadlocks(snapshot);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].describe().find("for t, which is held by itself"), std::string::npos)
      << found[0].describe();
}

TEST(Deadlock, TheOrderInWhichItIsToldDoesNotMatter) {
  const auto picture = [](bool turned) {
    Snapshot snapshot{
        .resources = {
            {.resource = "a",
             .holders = {entry(1, "ann", Mode::shared), entry(2, "bob", Mode::shared)},
             .waiters = {entry(4, "carl")}},
            {.resource = "b", .holders = {entry(3, "carl")}, .waiters = {entry(5, "ann")}},
            {.resource = "c", .holders = {entry(6, "carl")}, .waiters = {entry(7, "bob")}},
        }};
    if (turned) {
      std::reverse(snapshot.resources.begin(), snapshot.resources.end());
      auto& holders = snapshot.resources.back().holders;
      std::reverse(holders.begin(), holders.end());
    }
    return find_deadlocks(snapshot);
  };
  const auto one = picture(false);
  auto other = picture(true);
  ASSERT_EQ(one.size(), 1U);
  ASSERT_EQ(other.size(), 1U);
  EXPECT_TRUE(one[0].same_as(other[0])) << one[0].describe() << '\n' << other[0].describe();
  std::reverse(other[0].members.begin(), other[0].members.end());
  EXPECT_TRUE(one[0].same_as(other[0]));
  EXPECT_TRUE(other[0].same_as(one[0]));
  other[0].members[0] = other[0].members[1];  // as many, and all of them known
  EXPECT_FALSE(one[0].same_as(other[0]));
  EXPECT_FALSE(other[0].same_as(one[0]));
}

// Two jobs, each with a command that holds and one in it that waits.
Snapshot nested() {
  auto snapshot = Snapshot{
      .resources = {
          {.resource = "a", .holders = {entry(1, "job-1")}, .waiters = {entry(4, "job-2>x")}},
          {.resource = "b",
           .holders = {entry(2, "job-2")},
           .waiters = {entry(3, "job-1>y", Mode::exclusive, 2s)}}}};
  const auto name = [](Entry& entry, const char* label, std::int64_t pid) {
    entry.who.label = label;
    entry.who.pid = pid;
  };
  name(snapshot.resources[0].holders[0], "outer-1", 11);
  name(snapshot.resources[0].waiters[0], "inner-2", 22);
  name(snapshot.resources[1].holders[0], "outer-2", 21);
  name(snapshot.resources[1].waiters[0], "inner-1", 12);
  return snapshot;
}

TEST(Deadlock, APartThatWaitsKeepsTheWholeFromGettingOn) {
  const auto found = find_deadlocks(nested());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].members.size(), 2U);
}

TEST(Deadlock, ItNamesWhoHoldsAndAsWhom) {
  const auto found = find_deadlocks(nested());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].describe(),
            "'inner-1' (here, process 12, actor job-1>y) has waited 2s for b, which is held by "
            "'outer-2' (here, process 21, actor job-2); "
            "'inner-2' (here, process 22, actor job-2>x) has waited 1s for a, which is held by "
            "'outer-1' (here, process 11, actor job-1)");
}

// Side by side: one part waits, and the one that is in the way works.
TEST(Deadlock, PartsOfOneActorDoNotWaitForEachOther) {
  Snapshot snapshot{
      .resources = {
          {.resource = "a", .holders = {entry(1, "job>x")}, .waiters = {entry(4, "other")}},
          {.resource = "b", .holders = {entry(2, "other")}, .waiters = {entry(3, "job>y")}},
          {.resource = "c", .holders = {entry(5, "job")}},
      }};
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
  // The whole gets on while a part of it does.
  snapshot.resources[2].waiters = {entry(4, "other")};
  snapshot.resources[0].waiters.clear();
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
  // And when that has ended, it does not.
  snapshot.resources[0].holders.clear();
  EXPECT_EQ(find_deadlocks(snapshot).size(), 1U);
}

// Ann waits for `a` and `b` at once; bob has `b`, and stands behind her for `a`, which is free.
TEST(Deadlock, ThePlaceInLineCounts) {
  Snapshot snapshot{
      .resources = {
          {.resource = "a", .waiters = {entry(2, "ann"), entry(3, "bob")}},
          {.resource = "b", .holders = {entry(4, "bob")}, .waiters = {entry(2, "ann")}},
      }};
  const auto found = find_deadlocks(snapshot);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].describe().find("for a, behind 'ann'"), std::string::npos)
      << found[0].describe();
  snapshot.resources[1].holders[0].who.actor = "carl";
  EXPECT_TRUE(find_deadlocks(snapshot).empty());
}

// What the rules of the memory store make of random actors: whoever does not wait releases all it has,
// until nothing moves any more. Those who still wait are stuck, and nobody else may be accused.
class RandomActors {
 public:
  explicit RandomActors(unsigned seed) : random_(seed), store_(), backend_(store_.open()) {
    for (int i = 0; i < 5; ++i) actors_.push_back({.name = "actor" + std::to_string(i)});
  }

  void step() {
    auto& actor = actors_[pick(actors_.size())];
    if (actor.waiting) return ask(actor);
    if (!actor.held.empty() && pick(4) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(pick(actor.held.size()));
      release(actor.held[static_cast<std::size_t>(at)]);
      actor.held.erase(actor.held.begin() + at);
      return;
    }
    auto next = claim(actor.name);
    // That would look like a reader that becomes a writer.
    for (const auto& held : actor.held) {
      for (const auto& part : next.parts) {
        const auto* has = held.find(part.resource);
        if (has != nullptr && has->mode == Mode::shared) return;
      }
    }
    actor.waiting = std::move(next);
    ask(actor);
  }

  [[nodiscard]] Snapshot look() {
    Snapshot seen;
    backend_->inspect({}, {}, [&](Snapshot snapshot) { seen = std::move(snapshot); });
    return seen;
  }

  std::set<std::string> run_to_the_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& actor : actors_) {
        if (actor.waiting) ask(actor);
        if (actor.waiting || actor.held.empty()) continue;
        for (const auto& held : actor.held) release(held);
        actor.held.clear();
        moved = true;
      }
    }
    std::set<std::string> stuck;
    for (const auto& actor : actors_) {
      if (actor.waiting) stuck.insert(actor.name);
    }
    return stuck;
  }

 private:
  struct Actor {
    std::string name;
    std::vector<Claim> held{};
    std::optional<Claim> waiting{};
  };

  std::size_t pick(std::size_t below) { return random_() % below; }

  Claim claim(const std::string& actor) {
    std::vector<Part> parts;
    const auto first = pick(5);
    for (const auto number : {first, pick(4) == 0 ? pick(5) : first}) {
      if (!parts.empty() && number == first) break;
      Part part{.resource = "r" + std::to_string(number)};
      if (number == 0) {
        part.mode = Mode::slots;
        part.capacity = 2;
        part.slots = static_cast<std::uint32_t>(1 + pick(2));
      } else if (pick(3) == 0) {
        part.mode = Mode::shared;
      }
      parts.push_back(part);
    }
    normalize(parts, false);
    return {.owner = Owner::random(),
            .parts = parts,
            .ttl = 1h,
            .priority = static_cast<std::int32_t>(pick(2)),
            .who = std::make_shared<const Who>(
                Who{.identity = pick(4) == 0 ? "twins" : "", .host = "here", .actor = actor})};
  }

  void ask(Actor& actor) {
    backend_->acquire(*actor.waiting, true, {}, [&](const Answer& answer) {
      if (answer.verdict != Verdict::granted) return;
      actor.held.push_back(*actor.waiting);
      actor.waiting.reset();
    });
  }
  void release(const Claim& held) {
    backend_->release(held, {}, [](const Answer&) {});
  }

  std::minstd_rand random_;
  MemoryStore store_;
  std::unique_ptr<Backend> backend_;
  std::vector<Actor> actors_;
};

TEST(Deadlock, ExactlyThoseWhoAreStuckAreFound) {
  int deadlocks = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    RandomActors actors(seed);
    for (int i = 0; i < 30; ++i) actors.step();
    const auto found = find_deadlocks(actors.look());
    const auto stuck = actors.run_to_the_end();
    ASSERT_EQ(found.empty(), stuck.empty()) << "seed " << seed;
    deadlocks += stuck.empty() ? 0 : 1;
    for (const auto& deadlock : found) {
      for (const auto& member : deadlock.members) {
        ASSERT_TRUE(stuck.contains(member.who.actor)) << "seed " << seed << deadlock.describe();
      }
    }
  }
  EXPECT_GT(deadlocks, 100);
  EXPECT_LT(deadlocks, 2900);
}

// The processor's time, as the machine may have other things to do.
Duration time_to_find(const Snapshot& snapshot, std::size_t circles) {
  const auto before = std::clock();
  EXPECT_EQ(find_deadlocks(snapshot).size(), circles);
  return std::chrono::microseconds((std::clock() - before) * 1'000'000 / CLOCKS_PER_SEC);
}

// It takes milliseconds. What looks at pairs takes minutes.
constexpr auto kFarTooLong = 2s;
constexpr std::uint64_t kMany = 5000;

std::string actor(std::uint64_t i) { return "actor" + std::to_string(i); }

TEST(DeadlockAtScale, ALongLineTakesMilliseconds) {
  ResourceState line{.resource = "line", .holders = {entry(1, "holder")}};
  for (std::uint64_t i = 0; i < kMany; ++i) line.waiters.push_back(entry(10 + i, actor(i)));
  Snapshot snapshot{.resources = {line}};
  const auto moves = time_to_find(snapshot, 0);
  snapshot.resources.push_back({.resource = "other",
                                .holders = {entry(2, actor(kMany - 1))},
                                .waiters = {entry(3, "holder")}});
  const auto stuck = time_to_find(snapshot, 1);
  std::cout << kMany << " in a line: " << moves / 1us << " us if it moves, " << stuck / 1us
            << " us if not\n";
  EXPECT_LT(moves, kFarTooLong);
  EXPECT_LT(stuck, kFarTooLong);
}

TEST(DeadlockAtScale, SoDoesALongCircle) {
  Snapshot snapshot;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    snapshot.resources.push_back({.resource = "r" + std::to_string(i),
                                  .holders = {entry(10 + i, actor(i))},
                                  .waiters = {entry(10 + kMany + i, actor((i + 1) % kMany))}});
  }
  const auto time = time_to_find(snapshot, 1);
  std::cout << kMany << " in a circle: " << time / 1us << " us\n";
  EXPECT_LT(time, kFarTooLong);
}

// All of them read, and all of them want to write.
TEST(DeadlockAtScale, SoDoManyHoldersThatWait) {
  ResourceState crowd{.resource = "crowd"};
  for (std::uint64_t i = 0; i < kMany; ++i) {
    crowd.holders.push_back(entry(10 + i, actor(i), Mode::shared));
    crowd.waiters.push_back(entry(10 + kMany + i, actor(i)));
  }
  const auto time = time_to_find({.resources = {crowd}}, 1);
  std::cout << kMany << " readers that want to write: " << time / 1us << " us\n";
  EXPECT_LT(time, kFarTooLong);
}

TEST(DeadlockAtScale, SoDoManySlots) {
  ResourceState room{.resource = "room", .capacity = kMany};
  for (std::uint64_t i = 0; i < kMany; ++i) {
    room.holders.push_back(entry(10 + i, actor(i), Mode::slots));
    room.waiters.push_back(entry(10 + kMany + i, actor(i), Mode::slots));
    room.waiters.back().slots = static_cast<std::uint32_t>(1 + i);
  }
  const auto time = time_to_find({.resources = {room}}, 1);
  std::cout << kMany << " who want more slots: " << time / 1us << " us\n";
  EXPECT_LT(time, kFarTooLong);
}

// Thousands wait in line, each an actor of its own, and the same client has to keep its leases.
TEST(DeadlockAtScale, LeasesAreRenewedMeanwhile) {
  MemoryStore store;
  const Client client(store.open(), {});
  const auto held = Mutex(client, "line", {.actor = "holder"}).acquire();
  auto lease = Mutex(client, "unrelated", {.ttl = 3s}).acquire();
  std::stop_source stop;
  std::atomic<int> over{0};
  constexpr int kWaiting = 2000;
  for (int i = 0; i < kWaiting; ++i) {
    Mutex(client, "line", {.actor = actor(static_cast<std::uint64_t>(i))})
        .acquire(Wait::forever(stop.get_token()), [&](const Attempt&) { ++over; });
  }
  ASSERT_TRUE(eventually([&] { return testing_support::all_who_wait(client) == kWaiting; }));
  // A circle behind all of them: when it is found, all of it was looked at, twice.
  const auto mine = Mutex(client, "mine", {.actor = "last"}).acquire();
  Waiting last(Mutex(client, "line", {.actor = "last"}));
  ASSERT_TRUE(eventually([&] { return testing_support::all_who_wait(client) == kWaiting + 1; }));
  Waiting holder(Mutex(client, "mine", {.actor = "holder"}));
  EXPECT_TRUE(eventually([&] { return holder.over(); }));
  EXPECT_EQ(lease.state(), LeaseState::held) << lease.lost_reason();
  stop.request_stop();
  EXPECT_TRUE(eventually([&] { return over == kWaiting; }));
}

}  // namespace
}  // namespace interlock
