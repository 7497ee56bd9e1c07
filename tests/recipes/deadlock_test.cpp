#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

using conformance::Waiting;

// The youngest of a circle is told, and stores tell ages in milliseconds.
constexpr auto kOlder = std::chrono::milliseconds(20);

RECIPE_SUITE(DeadlockWatch);

// They come in this order: each takes its own, then waits for the next one's. The last is the youngest.
class Circle {
 public:
  Circle(const std::vector<Client>& clients, const std::function<Options(std::size_t)>& options) {
    const auto mutex = [&](std::size_t i, std::size_t of) {
      return Mutex(clients[i], "r" + std::to_string(of % clients.size()), options(i));
    };
    const auto before = testing_support::all_who_wait(clients[0]);
    for (std::size_t i = 0; i < clients.size(); ++i) held_.push_back(mutex(i, i).acquire());
    for (std::size_t i = 0; i < clients.size(); ++i) {
      std::this_thread::sleep_for(kOlder);
      waiting_.emplace_back(mutex(i, i + 1));
      EXPECT_TRUE(eventually(
          [&] { return testing_support::all_who_wait(clients[0]) > before + i || over(i); }));
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

// Each from one thread: what it holds waits with it.
TEST_P(DeadlockWatch, TwoWhoUseLockingAreTold) {
  const auto work = [&](const char* identity, const char* first, const char* second) {
    Locking locking(identity, client());
    EXPECT_TRUE(locking.acquire({first}, 30s));
    EXPECT_TRUE(eventually([&] { return holders(second) == 1; }));
    try {
      return locking.acquire({second}, 30s, "", kPatience);
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
      EXPECT_NE(error.message().find(identity), std::string::npos) << error.what();
      locking.release({first});
      return false;
    }
  };
  auto one = std::async(std::launch::async, work, "worker-1", "a", "b");
  auto other = std::async(std::launch::async, work, "worker-2", "b", "a");
  EXPECT_NE(one.get(), other.get());
}

// When a circle was found that is younger than all else, all else was looked at, twice.
void expect_found(const std::vector<Client>& clients) {
  Circle circle(clients, actor);
  ASSERT_TRUE(eventually([&] { return circle.over(clients.size() - 1); }));
}

// One thread of each works, and another one waits for what the other's first thread has.
TEST_P(DeadlockWatch, AThreadThatWorksIsNotStuckWithOthersOfItsIdentity) {
  const std::vector<Client> clients{client(), client()};
  Locking one("worker-1", clients[0]);
  Locking other("worker-2", clients[1]);
  ASSERT_TRUE(one.acquire({"a"}));
  ASSERT_TRUE(other.acquire({"b"}));
  const auto wait = [](Locking& locking, const char* name) {
    return std::async(std::launch::async,
                      [&locking, name] { return locking.acquire({name}, 30s, "", kPatience); });
  };
  auto for_b = wait(one, "b");
  auto for_a = wait(other, "a");
  EXPECT_TRUE(eventually([&] { return waiters("a") == 1 && waiters("b") == 1; }));
  expect_found(clients);
  EXPECT_EQ(for_b.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(for_a.wait_for(0s), std::future_status::timeout);
  one.release({"a"});
  other.release({"b"});
  EXPECT_TRUE(for_b.get());
  EXPECT_TRUE(for_a.get());
}

// A lease that was handed on is not the business of the thread that acquired it.
TEST_P(DeadlockWatch, AnUpgradeOnAnotherThreadIsThatThreadsWait) {
  const std::vector<Client> clients{client(), client()};
  auto mine = Mutex(clients[0], "mine", {.identity = "one"}).acquire();
  auto handed_on = RwLock(clients[0], "book", {.identity = "one"}).read();
  auto reader = RwLock(clients[1], "book", {.actor = "reader"}).read();
  Waiting waits(Mutex(clients[1], "mine", {.actor = "reader"}));
  EXPECT_TRUE(eventually([&] { return waiters("mine") == 1; }));
  auto upgraded =
      std::async(std::launch::async, [&] { return handed_on.try_upgrade_for(kPatience); });
  EXPECT_TRUE(eventually([&] { return waiters("book") == 1; }));
  expect_found(clients);
  EXPECT_FALSE(waits.over());
  EXPECT_EQ(upgraded.wait_for(0s), std::future_status::timeout);
  mine.release();
  EXPECT_TRUE(waits.attempt());
  reader.release();
  EXPECT_TRUE(upgraded.get());
}

TEST_P(DeadlockWatch, TheYoungestOfThoseWhoLookIsTold) {
  const std::vector<Client> clients{client(), client(), client({.deadlocks = Deadlocks::off})};
  Circle circle(clients, actor);
  ASSERT_TRUE(eventually([&] { return circle.over(1); }));
  EXPECT_THROW((void)circle.result(1), Error);
  EXPECT_FALSE(circle.over(0));
  EXPECT_FALSE(circle.over(2));
  circle.release(1);
  EXPECT_TRUE(circle.result(0));
}

// However often others make the client look.
TEST_P(DeadlockWatch, TwoLooksAreHalfASecondApart) {
  const auto locks = client();
  const auto mutex = [&](const char* name, const std::string& actor) {
    return Mutex(locks, name, {.actor = actor});
  };
  const auto a = mutex("a", "ann").acquire();
  const auto b = mutex("b", "bob").acquire();
  Waiting ann(mutex("b", "ann"));
  std::vector<Waiting> others;
  for (int i = 0; i < 25; ++i) {
    others.emplace_back(mutex("b", "other " + std::to_string(i)));
    std::this_thread::sleep_for(25ms);
  }
  EXPECT_TRUE(eventually([&] { return waiters("b") == 26; }));
  std::this_thread::sleep_for(kOlder);
  const auto began = BootClock::now();
  Waiting bob(mutex("a", "bob"));
  EXPECT_TRUE(eventually([&] { return bob.over(); }));
  EXPECT_GE(BootClock::now() - began, 500ms);
  EXPECT_THROW((void)bob.attempt(), Error);
}

TEST_P(DeadlockWatch, OneWhoHoldsALeafAndWaitsForTheTreeIsTold) {
  const auto locks = client();
  const auto leaf = Mutex(locks, "t/1", {.actor = "ann"}).acquire();
  try {
    (void)Mutex(locks, "t", {.actor = "ann"}).try_acquire_for(kPatience);
    ADD_FAILURE() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
  }
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
    std::this_thread::sleep_for(kOlder);
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
  std::this_thread::sleep_for(kOlder);
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
