#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

using conformance::Waiting;

RECIPE_SUITE(DeadlockWatch);

// They come in this order: each takes its own, then waits for the next one's. The last is the youngest.
class Circle {
 public:
  Circle(const std::vector<Client>& clients, const std::function<Options(std::size_t)>& options) {
    const auto mutex = [&](std::size_t i, std::size_t of) {
      return Mutex(clients[i], "r" + std::to_string(of % clients.size()), options(i));
    };
    for (std::size_t i = 0; i < clients.size(); ++i) held_.push_back(mutex(i, i).acquire());
    for (std::size_t i = 0; i < clients.size(); ++i) {
      std::this_thread::sleep_for(20ms);  // stores tell ages in milliseconds
      waiting_.emplace_back(mutex(i, i + 1));
      EXPECT_TRUE(
          eventually([&] { return testing_support::all_who_wait(clients[0]) > i || over(i); }));
    }
  }

  [[nodiscard]] bool over(std::size_t i) const { return waiting_[i].over(); }
  Attempt result(std::size_t i) { return waiting_[i].attempt(); }
  void release(std::size_t i) { held_[i].release(); }

 private:
  std::vector<Lease> held_;
  std::vector<Waiting> waiting_;
};

Options actor(std::size_t i) {
  return {.label = "job " + std::to_string(i), .actor = std::to_string(i)};
}

TEST_P(DeadlockWatch, TheLastToComeIsToldAndTheOthersGoOn) {
  const std::vector<Client> clients{client(), client(), client()};
  Circle circle(clients, actor);
  ASSERT_TRUE(eventually([&] { return circle.over(2); }));
  try {
    (void)circle.result(2);
    FAIL() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
    const std::string text = error.what();
    for (const auto* part : {"r0", "r1", "r2", "job 0", "job 1", "job 2"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_FALSE(circle.over(0));
  EXPECT_FALSE(circle.over(1));
  circle.release(2);
  EXPECT_TRUE(circle.result(1));
  circle.release(1);
  EXPECT_TRUE(circle.result(0));
}

TEST_P(DeadlockWatch, IdentitiesAreActorsToo) {
  const std::vector<Client> clients{client(), client()};
  Circle circle(clients,
                [](std::size_t i) { return Options{.identity = "id" + std::to_string(i)}; });
  ASSERT_TRUE(eventually([&] { return circle.over(1); }));
  EXPECT_THROW((void)circle.result(1), Error);
  circle.release(1);
  EXPECT_TRUE(circle.result(0));
}

TEST_P(DeadlockWatch, ThreadsAreActorsIfTheClientSaysSo) {
  const auto locks = client({.deadlocks = Deadlocks::by_thread});
  std::promise<void> first_waits;
  auto first = std::async(std::launch::async, [&] {
    const auto a = Mutex(locks, "a").acquire();
    first_waits.set_value();
    EXPECT_TRUE(eventually([&] { return holders("b") == 1; }));
    const auto b = Mutex(locks, "b").acquire();
  });
  first_waits.get_future().wait();
  auto second = std::async(std::launch::async, [&] {
    const auto b = Mutex(locks, "b").acquire();
    EXPECT_TRUE(eventually([&] { return waiters("b") == 1; }));
    try {
      const auto a = Mutex(locks, "a").acquire();
      ADD_FAILURE() << "it should have thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
    }
  });
  second.get();
  first.get();
}

TEST_P(DeadlockWatch, NobodyIsToldWhereItIsSwitchedOff) {
  const std::vector<Client> clients{client({.deadlocks = Deadlocks::off}),
                                    client({.deadlocks = Deadlocks::off})};
  Circle circle(clients, actor);
  std::this_thread::sleep_for(2s);
  EXPECT_FALSE(circle.over(0));
  EXPECT_FALSE(circle.over(1));
  circle.release(1);
  EXPECT_TRUE(circle.result(0));
  circle.release(0);
  EXPECT_TRUE(circle.result(1));
}

// It holds nothing, but it is in the line of what is free, too.
TEST_P(DeadlockWatch, WhoAsksForMoreBehindASetThatWaitsForHimIsTold) {
  const auto locks = client();
  auto held = Mutex(locks, "a", {.actor = "ann"}).acquire();
  auto both = queue_up(MultiLock(client(), {"a", "b"}, {.actor = "bob"}));
  try {
    (void)Mutex(locks, "b", {.actor = "ann", .max_wait = kPatience}).acquire();
    FAIL() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
  }
  held.release();
  EXPECT_TRUE(both.attempt());
}

// A long wait is no deadlock: the one in front works.
TEST_P(DeadlockWatch, AQueueThatMovesIsNone) {
  const auto locks = client();
  auto held = Mutex(locks, "a", {.actor = "ann"}).acquire();
  const auto other = Mutex(locks, "b", {.actor = "bob"}).acquire();
  auto bob = queue_up(Mutex(locks, "a", {.actor = "bob"}));
  auto carl = queue_up(Mutex(locks, "b", {.actor = "carl"}));
  std::this_thread::sleep_for(2s);
  EXPECT_FALSE(bob.over());
  EXPECT_FALSE(carl.over());
  held.release();
  EXPECT_TRUE(bob.attempt());
}

}  // namespace
}  // namespace interlock::recipes
