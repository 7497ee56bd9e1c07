// An idle store holds nothing but the counter behind the fences, whatever it was used for. And many
// at once.
#include <atomic>
#include <cstdlib>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

class Traces : public RedisTest {
 protected:
  /// A number of things to do, from the environment for a longer run.
  static int from_environment(const char* name, int fallback) {
    const auto* text = std::getenv(name);
    return text == nullptr ? fallback : std::atoi(text);
  }
  void expect_no_trace(const char* of) { EXPECT_EQ(keys(), kOnlyTheFence) << of; }
  [[nodiscard]] Waiting queue_up(const Acquirer& acquirer) {
    const auto before = waiters(acquirer.resource());
    Waiting waiting(acquirer);
    EXPECT_TRUE(eventually([&] { return waiters(acquirer.resource()) > before; }));
    return waiting;
  }
};

// Expected: once released, a lock of any kind is gone from the server, at once, and so are its
// waiters.
TEST_F(Traces, EveryKindOfLockLeavesNothing) {
  const auto locks = connect(url());
  const auto other = connect(url());
  Mutex(locks, "r").acquire().release();
  expect_no_trace("a mutex");
  {
    auto lease = Mutex(locks, "r").acquire();
    auto waiting = queue_up(Mutex(other, "r"));
    EXPECT_FALSE(Mutex(other, "r").try_acquire());
    lease.release();
    waiting.lease().release();
  }
  expect_no_trace("a mutex that was waited for");
  {
    auto lease = Mutex(locks, "r").acquire();
    EXPECT_FALSE(Mutex(other, "r").try_acquire_for(50ms));
    lease.release();
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
  {
    const RwLock lock(locks, "r");
    auto one = lock.read();
    auto two = RwLock(other, "r").read();
    auto writer = queue_up(RwLock(other, "r").writer());
    auto reader = queue_up(lock.reader());
    one.release();
    two.release();
    writer.lease().release();
    reader.lease().release();
  }
  expect_no_trace("a reader-writer lock");
  {
    auto lease = RwLock(locks, "r").read();
    EXPECT_TRUE(lease.try_upgrade());
    EXPECT_TRUE(lease.downgrade());
    auto more = RwLock(other, "r").read();
    EXPECT_FALSE(lease.try_upgrade());
    EXPECT_FALSE(lease.try_upgrade_for(50ms));
    more.release();
    EXPECT_TRUE(lease.try_upgrade_for(kPatience));
    lease.release();
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
  {
    auto one = Semaphore(locks, "r", 3, {}, 2).acquire();
    auto two = Semaphore(other, "r", 3).acquire();
    auto waiting = queue_up(Semaphore(other, "r", 3));
    one.release();
    two.release();
    waiting.lease().release();
  }
  expect_no_trace("a semaphore");
  {
    auto all = MultiLock(locks, {exclusive("a/b/c"), shared("d"), slots("e", 1, 2)}).acquire();
    auto waiting = queue_up(MultiLock(other, {"d", "x"}));
    all.release({"d"});
    waiting.lease().release();
    all.release();
  }
  expect_no_trace("a multi-lock with ancestors");
  {
    auto outer = Mutex(locks, "r", {.identity = "me"}).acquire();
    auto inner = Mutex(other, "r", {.identity = "me"}).acquire();
    outer.release();
    inner.release();
  }
  expect_no_trace("a re-entrant lock");
  {
    auto lease = Mutex(locks, "r").acquire();
    EXPECT_TRUE(other.evict("r", lease.owner()));
    EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::lost; }));
  }
  expect_no_trace("a lock that was broken");
}

// Expected: what is not released goes by itself when its time is over.
TEST_F(Traces, WhatEndsByItselfLeavesNothing) {
  const auto locks = connect(url());
  const Options brief{.ttl = 200ms, .renew = false};
  auto mutex = Mutex(locks, "m", brief).acquire().detach();
  auto read = RwLock(locks, "r", brief).read().detach();
  auto slot = Semaphore(locks, "s", 2, brief).acquire().detach();
  auto several = MultiLock(locks, {"a/b", "c"}, brief).acquire().detach();
  EXPECT_NE(keys(), kOnlyTheFence);
  EXPECT_TRUE(eventually([&] { return keys() == kOnlyTheFence; })) << keys();
}

// The one with the long TTL goes, and the one with the short TTL is never heard of again. Expected:
// everything ends with the short TTL, also for programs that only look at the lock's key.
TEST_F(Traces, TheLockEndsWithTheLastOfItsHolders) {
  auto brief = RwLock(onlooker(), "r", {.ttl = 5s, .renew = false}).read();
  auto longer = RwLock(onlooker(), "r", {.ttl = 600s}).read();
  auto slot = Semaphore(onlooker(), "s", 2, {.ttl = 5s, .renew = false}).acquire();
  auto other = Semaphore(onlooker(), "s", 2, {.ttl = 600s}).acquire();
  longer.release();
  other.release();
  for (const std::string name : {"interlock:r", "{interlock:r}:holders", "{interlock:r}:ends",
                                 "interlock:s", "{interlock:s}:holders", "{interlock:s}:ends"}) {
    EXPECT_LE(std::stoi(console()("PTTL " + name)), 5000) << name;
  }
}

// Random values of other libraries begin with any character. Expected: such a lock is held, shown, and
// left alone, and who waits gets it when it is free.
TEST_F(Traces, AnothersLockIsHeldWhateverItsValue) {
  for (const std::string value : {"+a/b==", "+", "+slots:", "+shared/", "0"}) {
    console()("SET interlock:r " + value);
    EXPECT_FALSE(Mutex(onlooker(), "r").try_acquire()) << value;
    EXPECT_FALSE(RwLock(onlooker(), "r").try_read()) << value;
    EXPECT_EQ(holders("r"), 1U) << value;
    Waiting next(Mutex(onlooker(), "r"));
    EXPECT_TRUE(eventually([&] { return waiters("r") == 1; })) << value;
    EXPECT_EQ(console()("GET interlock:r"), value);
    console()("DEL interlock:r");
    next.lease().release();
  }
}

// Expected: what says that it is held, while nobody holds it, keeps nobody out.
TEST_F(Traces, ALockWithoutHoldersIsFree) {
  for (const std::string value : {"+shared", "+same", "+slots:3"}) {
    console()("SET interlock:r " + value);
    EXPECT_TRUE(Mutex(onlooker(), "r").try_acquire()) << value;
  }
}

// So many short locks, each of another name. Expected: DBSIZE is what it was before.
TEST_F(Traces, ManyShortLocksLeaveTheServerAsItWas) {
  const int count = from_environment("INTERLOCK_TEST_LOCKS", 40'000);
  const auto locks = connect(url());
  Mutex(locks, "first").acquire().release();
  const auto before = console()("DBSIZE");
  EXPECT_EQ(before, "1");
  std::atomic<int> next = 0;
  const auto start = BootClock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int n = next++; n < count; n = next++) {
          auto lease = Mutex(locks, "short:" + std::to_string(n)).acquire();
          if (n % 2 != 0) continue;  // the destructor does
          EXPECT_EQ(lease.release(), LeaseState::released);
        }
      });
    }
  }
  const std::chrono::duration<double> took = BootClock::now() - start;
  std::printf("%d locks in %.1f s: %.0f a second\n", count, took.count(), count / took.count());
  EXPECT_TRUE(eventually([&] { return console()("DBSIZE") == before; })) << console()("DBSIZE");
}

// A thousand waiters of five clients for one lock. Expected: all are served, one at a time, first
// come, first served, with growing fences.
TEST_F(Traces, AThousandWaitersAreServedInOrder) {
  const int each = from_environment("INTERLOCK_TEST_WAITERS", 1000) / 5;
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(connect(url()));
  auto held = Mutex(onlooker(), "r", {.ttl = 600s}).acquire();
  std::mutex mutex;
  std::vector<int> served;
  std::uint64_t last = held.fence().value;
  std::atomic<int> inside = 0;
  int number = 0;
  for (const auto& client : clients) {
    for (int i = 0; i < each; ++i) {
      Mutex(client, "r").acquire(Wait::forever(), [&, me = number++](Attempt attempt) {
        ASSERT_TRUE(attempt) << attempt.error().what();
        EXPECT_EQ(++inside, 1);
        {
          const std::lock_guard lock(mutex);
          EXPECT_GT(attempt->fence().value, std::exchange(last, attempt->fence().value));
          served.push_back(me);
        }
        --inside;
        attempt->release();
      });
    }
    // The next client's come after all of this one's.
    ASSERT_TRUE(eventually([&] { return waiters("r") == static_cast<std::size_t>(number); }));
  }
  const auto start = BootClock::now();
  held.release();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return served.size() == static_cast<std::size_t>(number);
  }));
  const std::chrono::duration<double> took = BootClock::now() - start;
  std::printf("%d waiters in %.1f s: %.0f handoffs a second\n", number, took.count(),
              number / took.count());
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(std::is_sorted(served.begin(), served.end()));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

}  // namespace
}  // namespace interlock::redis_tests
