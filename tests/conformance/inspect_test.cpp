// Who holds what, who waits, and since when; and that an idle store is empty. Row 3.6: host and process are
// shown, and the owner is not to be guessed from them.
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Inspection);

// Rows 0.1 and 3.6: the owner is random, and host and process are shown beside it.
TEST_P(Inspection, ShowsNothingAndThenTheOwner) {
  COVERS(Case<36>);
  const auto locks = client();
  EXPECT_TRUE(locks.inspect({.resources = {"r"}}).resources.empty());
  const auto lease =
      Mutex(locks, "r", {.ttl = 20s, .label = "why", .identity = "me", .priority = 3}).acquire();
  const auto state = look("r");
  ASSERT_EQ(state.holders.size(), 1U);
  const auto& holder = state.holders[0];
  EXPECT_EQ(holder.owner, lease.owner());
  EXPECT_EQ(holder.who, lease.who());
  EXPECT_EQ(holder.who.label, "why");
  EXPECT_EQ(holder.who.identity, "me");
  EXPECT_EQ(holder.who.pid, getpid());
  EXPECT_FALSE(holder.who.host.empty());
  EXPECT_EQ(holder.mode, Mode::exclusive);
  EXPECT_EQ(holder.priority, 3);
  EXPECT_GE(holder.age, 0s);
  EXPECT_GT(holder.remaining, 0s);
  EXPECT_LE(holder.remaining, 20s);
}

// Row 2.2: a name for the owner that everybody sees, and that gives no right to anything.
TEST_P(Inspection, AnOwnerIdIsShownAndDecidesNothing) {
  const auto locks = client();
  for (const auto* actor : {"", "ann"}) {
    for (const auto* label : {"", "why"}) {
      const Options named{.ttl = 20s, .label = label, .owner_id = "worker-7", .actor = actor};
      auto lease = Mutex(locks, "r", named).acquire();
      const auto holder = look("r").holders.at(0);
      EXPECT_EQ(holder.who.owner_id, "worker-7");
      EXPECT_EQ(holder.who.label, label);
      EXPECT_EQ(holder.who.actor, actor);
      EXPECT_EQ(holder.who, lease.who());
      EXPECT_FALSE(Mutex(locks, "r", named).try_acquire()) << "it is no identity";
      auto waiting = queue_up(Mutex(locks, "r", named));
      EXPECT_EQ(look("r").waiters.at(0).who.owner_id, "worker-7");
      lease.release();
      EXPECT_NE(waiting.lease().owner(), holder.owner) << "the owner itself is always a fresh one";
      EXPECT_TRUE(eventually([&] { return nothing_left(); }));
    }
  }
  const auto without = Mutex(locks, "r").acquire();
  EXPECT_EQ(look("r").holders.at(0).who.owner_id, "");
}

// Row 2.2: the namespace is a part of each name.
TEST_P(Inspection, ANamespaceKeepsEqualNamesApart) {
  const auto locks = client();
  const auto billing = MultiLock(locks, {"report", "table/1"}, {.name_space = "billing"}).acquire();
  EXPECT_EQ(billing.resource(), "billing:report");
  EXPECT_EQ(holders("billing:report"), 1U);
  EXPECT_EQ(holders("report"), 0U);
  EXPECT_FALSE(Mutex(locks, "report", {.name_space = "billing"}).try_acquire());
  EXPECT_FALSE(Mutex(locks, "billing:report").try_acquire());
  EXPECT_TRUE(Mutex(locks, "report").try_acquire());
  EXPECT_TRUE(Mutex(locks, "report", {.name_space = "mail"}).try_acquire());
  EXPECT_FALSE(Mutex(locks, "table", {.name_space = "billing"}).try_acquire())
      << "it has a row that is held";
  EXPECT_TRUE(RwLock(locks, "book", {.name_space = "billing"}).try_write());
  EXPECT_TRUE(Mutex(locks, "table", {.name_space = "mail"}).try_acquire());
}

TEST_P(Inspection, LeavesOutWhatIsFreeAndShowsAnEmptyLabelAsEmpty) {
  COVERS(Case<29>);
  const auto locks = client();
  const auto lease = Mutex(locks, "held").acquire();
  const auto snapshot = locks.inspect({.resources = {"free", "held", "free too"}});
  ASSERT_EQ(snapshot.resources.size(), 1U);
  EXPECT_EQ(snapshot.resources[0].resource, "held");
  EXPECT_EQ(snapshot.resources[0].holders.at(0).who.label, "");
}

TEST_P(Inspection, TheLabelSurvivesRenewals) {
  COVERS(Case<30>);
  const auto lease = Mutex(client(), "r", {.ttl = 900ms, .label = "still me"}).acquire();
  const auto first = lease.valid_until();
  ASSERT_TRUE(eventually([&] { return lease.valid_until() > first || !lease; }));
  EXPECT_EQ(look("r").holders.at(0).who.label, "still me");
}

TEST_P(Inspection, ShowsWaitersFirstComeFirst) {
  COVERS(Rule<3>);
  const auto locks = client();
  const auto held = Mutex(locks, "r").acquire();
  const auto first = queue_up(Mutex(locks, "r", {.label = "first"}));
  const auto second = queue_up(RwLock(locks, "r", {.label = "second"}).reader());
  const auto urgent = queue_up(Mutex(locks, "r", {.label = "urgent", .priority = 1}));
  const auto waiting = look("r").waiters;
  ASSERT_EQ(waiting.size(), 3U);
  EXPECT_EQ(waiting[0].who.label, "urgent");
  EXPECT_EQ(waiting[1].who.label, "first");
  EXPECT_EQ(waiting[2].who.label, "second");
  EXPECT_EQ(waiting[2].mode, Mode::shared);
  EXPECT_GE(waiting[1].age, waiting[2].age);
}

TEST_P(Inspection, FindsByPrefixSortedByName) {
  COVERS(Case<29>);
  const auto locks = client();
  const auto leases = MultiLock(locks, {"b:2", "a:1", "b:1", "c"}).acquire();
  const auto names = [&](const std::string& prefix) {
    std::vector<std::string> found;
    for (const auto& state : locks.inspect({.prefix = prefix}).resources) {
      found.push_back(state.resource);
    }
    return found;
  };
  EXPECT_EQ(names("b:"), (std::vector<std::string>{"b:1", "b:2"}));
  EXPECT_EQ(names(""), (std::vector<std::string>{"a:1", "b:1", "b:2", "c"}));
  EXPECT_TRUE(names("d").empty());
}

TEST_P(Inspection, ShowsSlotsAndCapacity) {
  COVERS(Case<36>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const auto locks = client();
  const auto two = Semaphore(locks, "r", 5, {}, 2).acquire();
  const auto three = Semaphore(locks, "r", 5, {}, 3).acquire();
  const auto state = look("r");
  EXPECT_EQ(state.capacity, 5U);
  ASSERT_EQ(state.holders.size(), 2U);
  EXPECT_EQ(state.holders[0].slots + state.holders[1].slots, 5U);
  EXPECT_EQ(state.holders[0].mode, Mode::slots);
}

// Row 3.3.
TEST_P(Inspection, AnIdleResourceLeavesNothingBehind) {
  COVERS(Rule<3>, Rule<8>);
  const auto locks = client();
  for (int i = 0; i < 3; ++i) {
    const auto name = "job:" + std::to_string(i) + "/part";
    auto lease = Mutex(locks, name).acquire();
    EXPECT_FALSE(Mutex(locks, name).try_acquire());
    EXPECT_FALSE(Mutex(locks, name).try_acquire_for(100ms));
    lease.release();
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Inspection, OwnersAreShownSoThatTheyCanBeEvicted) {
  COVERS(Rule<8>);
  const auto locks = client();
  const auto held = Mutex(locks, "r").acquire();
  auto waiting = queue_up(Mutex(locks, "r"));
  const auto state = look("r");
  EXPECT_FALSE(client().evict("elsewhere", state.holders.at(0).owner));
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_TRUE(client().evict("r", state.holders.at(0).owner));
  EXPECT_TRUE(waiting.lease());
}

}  // namespace
}  // namespace interlock::conformance
