#include "interlock/deadlock.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/who.hpp"
#include "interlock/interlock.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;

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
            .who = std::make_shared<const Who>(Who{.host = "here", .actor = actor})};
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

}  // namespace
}  // namespace interlock
