#include <unistd.h>

#include <stdexcept>

#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(Tasks);

// Row 0.9.
TEST_P(Tasks, ATaskIsOneWorkersAndTheOthersLearnWhose) {
  const TaskQueue mine(client(), "mail", {.label = "worker 1"});
  const TaskQueue theirs(client(), "mail");
  EXPECT_FALSE(theirs.worker("42"));
  auto task = mine.claim("42");
  ASSERT_TRUE(task);
  EXPECT_EQ(task->id(), "42");
  EXPECT_TRUE(*task);
  EXPECT_EQ(holders("task:mail:42"), 1U);
  const auto refused = theirs.claim("42");
  ASSERT_FALSE(refused);
  ASSERT_TRUE(refused.worker());
  EXPECT_EQ(refused.worker()->label, "worker 1");
  EXPECT_EQ(refused.worker()->pid, getpid());
  EXPECT_FALSE(refused.worker()->host.empty());
  EXPECT_FALSE(refused.worker()->finished);
  EXPECT_TRUE(theirs.claim("43"));
  EXPECT_EQ(task->done(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Tasks, ATaskRunsOnceAtATime) {
  std::atomic<int> at_work = 0;
  std::atomic<int> ran = 0;
  std::atomic<bool> overlap = false;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&, queue = TaskQueue(client(), "mail")] {
        for (int n = 0; n < 10;) {
          const bool mine = queue.run("42", [&](const std::stop_token& lost) {
            EXPECT_FALSE(lost.stop_requested());
            if (at_work.fetch_add(1) != 0) overlap = true;
            std::this_thread::yield();
            at_work.fetch_sub(1);
            ++ran;
          });
          if (mine) ++n;
        }
      });
    }
  }
  EXPECT_FALSE(overlap);
  EXPECT_EQ(ran, 40);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Tasks, AFinishedTaskIsNotStartedAgainByALateWorker) {
  const TaskQueue mine(client(), "mail", {.label = "worker 1", .at_least_for = 2s});
  const TaskQueue late(client(), "mail");
  int ran = 0;
  EXPECT_TRUE(mine.run("42", [&] { ++ran; }));
  const auto refused = late.claim("42");
  ASSERT_FALSE(refused);
  ASSERT_TRUE(refused.worker());
  EXPECT_TRUE(refused.worker()->finished);
  EXPECT_EQ(refused.worker()->label, "worker 1");
  EXPECT_LE(refused.worker()->remaining, 3s) << "not the 30s of a worker's claim";
  EXPECT_TRUE(eventually([&] { return late.run("42", [&] { ++ran; }); }));
  EXPECT_EQ(ran, 2);
}

TEST_P(Tasks, AFinishedTaskStaysSoWithoutItsWorker) {
  if (!client().traits().detaches) GTEST_SKIP() << "a lease ends with its client here";
  EXPECT_TRUE(TaskQueue(client(), "mail", {.at_least_for = 1h}).run("42", [] {}));
  const auto refused = TaskQueue(client(), "mail").claim("42");
  EXPECT_FALSE(refused);
  EXPECT_TRUE(refused.worker() && refused.worker()->finished);
}

TEST_P(Tasks, WhoeverMustKeepATaskHimselfCanWaitForIt) {
  const TaskQueue queue(client(), "mail", {.at_least_for = 1s});
  EXPECT_TRUE(queue.run("42", [] {}));
  queue.linger();
  if (!client().traits().detaches) {
    EXPECT_TRUE(eventually([&] { return holders("task:mail:42") == 0; }));
  }
}

TEST_P(Tasks, ATaskThatFailedIsFreeAtOnce) {
  const TaskQueue queue(client(), "mail", {.at_least_for = 1h});
  EXPECT_THROW(queue.run("42", [] { throw std::runtime_error("no such mailbox"); }),
               std::runtime_error);
  EXPECT_TRUE(queue.claim("42"));
  {
    auto task = queue.claim("42");
    ASSERT_TRUE(task);
    EXPECT_EQ(task->give_back(), LeaseState::released);
  }
  EXPECT_TRUE(nothing_left());
}

TEST_P(Tasks, AWorkerThatIsGoneLosesItsTaskWhenItsTtlHasEnded) {
  auto network = chaos(store().open());
  auto* const cable = network.get();
  const TaskQueue cut_off(Client(std::move(network)), "mail", {.ttl = 1s});
  const TaskQueue other(client(), "mail");
  auto task = cut_off.claim("42");
  ASSERT_TRUE(task);
  cable->set({.fail = 1.0});
  std::optional<Task> taken;
  ASSERT_TRUE(eventually([&] {
    auto attempt = other.claim("42");
    if (attempt) taken.emplace(std::move(*attempt));
    return taken.has_value();
  }));
  EXPECT_FALSE(*task);
  EXPECT_TRUE(eventually([&] { return task->lost().stop_requested(); }));
  cable->set({});
  EXPECT_EQ(task->done(), LeaseState::lost);
  EXPECT_TRUE(*taken);
  EXPECT_EQ(taken->done(), LeaseState::released);
}

TEST_P(Tasks, AWorkerWhoseClaimIsBrokenIsTold) {
  const TaskQueue queue(client(), "mail", {.ttl = 1s});
  try {
    (void)queue.run("42", [&](Task& task) {
      store().break_hold("task:mail:42");
      EXPECT_TRUE(eventually([&] { return task.lost().stop_requested(); }));
    });
    FAIL() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::lost);
    EXPECT_NE(std::string(error.what()).find("task:mail:42"), std::string::npos) << error.what();
  }
}

TEST_P(Tasks, WhoLostHisClaimFinishesNothing) {
  const TaskQueue loser(client(), "mail", {.ttl = 600s, .at_least_for = 1h});
  const TaskQueue other(client(), "mail", {.label = "worker 2", .at_least_for = 1h});
  auto task = loser.claim("42");
  ASSERT_TRUE(task);
  store().break_hold("task:mail:42");
  EXPECT_EQ(task->done(), LeaseState::lost);
  EXPECT_FALSE(other.worker("42")) << "neither at work nor finished";

  EXPECT_THROW((void)loser.run("43", [&] { store().break_hold("task:mail:43"); }), Error);
  auto taken = other.claim("43");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->done(), LeaseState::released);
  EXPECT_TRUE(loser.worker("43").value().finished) << "by the one who had it";
}

TEST_P(Tasks, WhoLostHisClaimLeavesThatOfAnotherAlone) {
  const TaskQueue loser(client(), "mail", {.ttl = 600s, .at_least_for = 1h});
  const TaskQueue other(client(), "mail", {.label = "worker 2", .at_least_for = 1h});
  auto task = loser.claim("42");
  ASSERT_TRUE(task);
  store().break_hold("task:mail:42");
  auto taken = other.claim("42");
  ASSERT_TRUE(taken);
  EXPECT_EQ(task->done(), LeaseState::lost);
  EXPECT_TRUE(*taken);
  EXPECT_EQ(holders("task:mail:42"), 1U);
  EXPECT_EQ(loser.worker("42").value().label, "worker 2");
  EXPECT_FALSE(loser.worker("42").value().finished);
  EXPECT_EQ(taken->done(), LeaseState::released);
}

TEST_P(Tasks, TheFirstFreeOfSeveralIsClaimed) {
  const TaskQueue mine(client(), "mail");
  const TaskQueue theirs(client(), "mail");
  const std::vector<std::string> ids{"1", "2", "3"};
  auto one = mine.claim("1");
  auto two = theirs.claim_any(ids);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->id(), "2");
  auto three = mine.claim_any(ids);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->id(), "3");
  EXPECT_FALSE(theirs.claim_any(ids));
  EXPECT_FALSE(theirs.claim_any({}));
  one->give_back();
  const auto again = theirs.claim_any(ids);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(), "1");
}

TEST_P(Tasks, NamesDoNotMix) {
  const auto locks = client();
  const TaskQueue queue(locks, "mail");
  const auto above = queue.claim("a");
  const auto below = queue.claim("a/b");
  EXPECT_TRUE(above);
  EXPECT_TRUE(below) << "a slash means nothing here";
  EXPECT_THROW(TaskQueue(locks, "mail:eu"), Error) << "its task 1 would be task eu:1 of mail";
  EXPECT_THROW(TaskQueue(locks, ""), Error);
  EXPECT_THROW(TaskQueue(locks, "mail", {.ttl = 0s}), Error);
  EXPECT_THROW(TaskQueue(locks, "mail", {.at_least_for = -1s}), Error);
  EXPECT_THROW((void)queue.claim(""), Error);
}

TEST(TaskClock, ATaskIsKeptForTheRestOfTheTimeAndNotForItsTtl) {
  auto clock = std::make_shared<ManualClock>();
  const MemoryStore store(clock);
  const TaskQueue queue(Client(store.open(), {.clock = clock}), "mail",
                        {.ttl = 5min, .at_least_for = 1min});
  const TaskQueue late(Client(store.open(), {.clock = clock}), "mail");
  auto task = queue.claim("42");
  ASSERT_TRUE(task);
  clock->advance(40s);
  EXPECT_EQ(task->done(), LeaseState::released);
  clock->advance(19s);
  EXPECT_FALSE(late.claim("42"));
  clock->advance(1s);
  EXPECT_TRUE(late.claim("42"));

  auto slow = queue.claim("43");
  ASSERT_TRUE(slow);
  clock->advance(61s);
  EXPECT_EQ(slow->done(), LeaseState::released);
  EXPECT_TRUE(late.claim("43")) << "it took longer than that by itself";
}

}  // namespace
}  // namespace interlock::recipes
