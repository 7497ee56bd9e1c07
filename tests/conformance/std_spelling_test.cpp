// The std spelling: scoped_lock, unique_lock and shared_lock over Mutex and RwLock (row 2.1).
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(StdSpelling);

TEST_P(StdSpelling, ScopedLockTakesTwoMutexes) {
  COVERS(Rule<1>, Rule<12>);
  Mutex a(client(), "a");
  Mutex b(client(), "b");
  {
    const std::scoped_lock both(a, b);
    EXPECT_EQ(holders("a") + holders("b"), 2U);
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(StdSpelling, ScopedLocksInOppositeOrderDontDeadlock) {
  COVERS(Rule<1>);
  std::atomic<int> counter = 0;  // read and written apart: the lock is what makes it one step
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < 2; ++worker) {
      workers.emplace_back([&, worker, locks = client()] {
        Mutex a(locks, "a");
        Mutex b(locks, "b");
        for (int i = 0; i < 5; ++i) {
          if (worker == 0) {
            const std::scoped_lock both(a, b);
            counter = counter + 1;
          } else {
            const std::scoped_lock both(b, a);
            counter = counter + 1;
          }
        }
      });
    }
  }
  EXPECT_EQ(counter, 10);
}

TEST_P(StdSpelling, UniqueLockTriesAndWaitsAndTimesOut) {
  COVERS(Rule<10>);
  Mutex here(client(), "r");
  Mutex there(client(), "r");
  std::unique_lock lock(here);
  EXPECT_FALSE(there.try_lock());
  EXPECT_FALSE(there.try_lock_for(100ms));
  EXPECT_FALSE(there.try_lock_until(std::chrono::steady_clock::now() + 20ms));
  const std::unique_lock failed(there, std::try_to_lock);
  EXPECT_FALSE(failed.owns_lock());
  lock.unlock();
  std::unique_lock bounded(there, std::defer_lock);
  EXPECT_TRUE(bounded.try_lock_for(kPatience));
  EXPECT_FALSE(here.try_lock());
}

// Row 2.1.
TEST_P(StdSpelling, SharedLockReadsTogetherAndUniqueLockWritesAlone) {
  COVERS(Rule<1>);
  RwLock here(client(), "r");
  RwLock there(client(), "r");
  {
    const std::shared_lock first(here);
    const std::shared_lock second(there, 10s);
    EXPECT_TRUE(second.owns_lock());
    EXPECT_FALSE(there.try_lock());
    EXPECT_FALSE(here.try_lock_for(100ms));
    EXPECT_EQ(holders("r"), 2U);
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
  {
    const std::unique_lock writer(here);
    EXPECT_FALSE(there.try_lock_shared());
    EXPECT_FALSE(there.try_lock_shared_for(100ms));
    EXPECT_FALSE(there.try_lock());
  }
  EXPECT_TRUE(eventually([&] { return there.try_lock_shared(); }));
  there.unlock_shared();
}

TEST_P(StdSpelling, ManyThreadsMayShareOneObject) {
  COVERS(Rule<12>);
  Mutex mutex(client(), "r");
  std::atomic<int> counter = 0;  // read and written apart: the lock is what makes it one step
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < 6; ++worker) {
      workers.emplace_back([&] {
        for (int i = 0; i < 5; ++i) {
          const std::lock_guard lock(mutex);
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 30);
}

}  // namespace
}  // namespace interlock::conformance
