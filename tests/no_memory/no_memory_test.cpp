// Memory at its end: an allocation that fails, anywhere in the library, ends no process, leaves no lock for nobody, and
// takes no answer away from anybody.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/courier.hpp"
#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "no_memory/failing.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using namespace no_memory;

/// Longer than anything here takes.
constexpr auto kTtl = 10min;

/// Nobody holds anything, nor waits for it; and so it is before any TTL ends.
bool is_free(Client& locks) {
  const Exempt me;
  return eventually([&] {
    for (const auto& resource : locks.inspect({}).resources) {
      if (!resource.holders.empty() || !resource.waiters.empty()) return false;
    }
    return true;
  });
}

/// Does it again and again, and each time another allocation fails: all that it makes, one after the other.
template <class What>
void with_each_failing(Client& locks, const What& what) {
  what();  // what is made once is there
  for (long next = 1;; ++next) {
    fails_at = allocations + next;
    const auto before = failed.load();
    try {
      what();
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    const Exempt me;
    // A thread of the client may come to it a moment later.
    std::this_thread::sleep_for(1ms);
    fails_at = 0;
    ASSERT_TRUE(is_free(locks)) << "after failure of allocation " << next;
    if (failed == before) {
      EXPECT_GT(next, 5) << "it allocates something";
      return;
    }
  }
}

TEST(NoMemory, LeavesNoLockThatWasTakenByACall) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  with_each_failing(locks, [&] {
    const auto lease = mutex.try_acquire();
    EXPECT_TRUE(lease);
  });
  with_each_failing(locks, [&] {
    auto lease = mutex.acquire();
    (void)lease.release();
  });
}

TEST(NoMemory, TakesNoAnswerFromACallback) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  with_each_failing(locks, [&] {
    std::shared_ptr<std::atomic<int>> told;
    {
      const Exempt me;
      told = std::make_shared<std::atomic<int>>();
    }
    // If this throws, it will never be called. What it is told may be that there was no answer.
    mutex.acquire(Wait::once(), [told](const Attempt&) { ++*told; });
    const Exempt me;
    EXPECT_TRUE(eventually([&] { return *told > 0; }));
    EXPECT_EQ(*told, 1);
  });
}

TEST(NoMemory, KeepsNoCancelFromAWaiter) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  const auto held = mutex.acquire();
  const Exempt me;  // it is about the threads of the client
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    fails_at = allocations + next;
    std::stop_source cancel;
    const auto told = std::make_shared<std::atomic<int>>();
    mutex.acquire(Wait::forever(cancel.get_token()), [told](const Attempt&) { ++*told; });
    EXPECT_TRUE(eventually(
        [&] { return *told > 0 || !locks.inspect({}).resources.at(0).waiters.empty(); }));
    cancel.request_stop();
    ASSERT_TRUE(eventually([&] { return *told > 0; })) << "allocation " << next;
    fails_at = 0;
  }
  EXPECT_GT(failed, 5);
}

// The store's own thread: calls that it carries out late, and answers that it holds back. What is lost there is asked for again.
TEST(NoMemory, EndsNoThreadOfChaos) {
  Client locks(chaos(memory_store(), {.duplicate = 0.5, .delay = 1, .max_delay = 100us}),
               {.release_timeout = 20ms});
  const Exempt me;  // it is about the threads of the client and of the store
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    fails_at = allocations + next;
    const Mutex mutex(locks, "a", {.ttl = 1s});
    try {
      (void)mutex.try_acquire_for(20ms);
    } catch (const Error&) {
    }
    fails_at = 0;
  }
  EXPECT_GT(failed, 5);
  EXPECT_TRUE(is_free(locks));
}

TEST(NoMemory, EndsNoElection) {
  auto locks = connect("memory:");
  const Exempt me;  // it is about the threads of the election and of the client
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    fails_at = allocations + next;
    LeaderElection election(locks, "leader", {.ttl = kTtl});
    election.start();
    EXPECT_TRUE(eventually([&] { return election.is_leader(); })) << "allocation " << next;
    fails_at = 0;
  }
  EXPECT_GT(failed, 5);
}

TEST(NoMemory, LetsNoTwoIn) {
  auto locks = connect("memory:");
  for (const long among : {1000L, 200L}) {
    std::atomic<int> inside = 0;
    std::atomic<long> granted = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&](const std::stop_token& stop) {
          // Its constructor may throw as well, and is the test's own.
          const auto mutex = [&] {
            const Exempt me;
            return Mutex(locks, "a", {.ttl = 2s});
          }();
          while (!stop.stop_requested()) {
            try {
              const auto lease = mutex.try_acquire_for(100ms);
              if (!lease) continue;
              EXPECT_EQ(++inside, 1);
              ++granted;
              std::this_thread::yield();
              --inside;
            } catch (const std::bad_alloc&) {
            } catch (const Error&) {
            }
          }
        });
      }
      one_of = among;
      const auto before = failed.load();
      const Exempt me;
      EXPECT_TRUE(eventually([&] { return failed > before + 10 && granted > 10; }));
      one_of = 0;
    }
    EXPECT_TRUE(is_free(locks)) << "one of " << among;
  }
}

TEST(NoMemory, TakesNoLossFromItsHolder) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = 30ms, .renew = false});
  const Exempt me;  // it is about the threads of the client
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    const auto lease = mutex.acquire();
    const auto lost = lease.lost();
    fails_at = allocations + next;
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); })) << "allocation " << next;
    std::this_thread::sleep_for(1ms);
    fails_at = 0;
  }
  EXPECT_GT(failed, 3);
}

TEST(NoMemory, EndsNoProcessThatCancels) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  const auto held = mutex.acquire();
  const Exempt me;
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    std::stop_source cancel;
    const auto told = std::make_shared<std::atomic<int>>();
    mutex.acquire(Wait::forever(cancel.get_token()), [told](const Attempt&) { ++*told; });
    EXPECT_TRUE(eventually([&] { return !locks.inspect({}).resources.at(0).waiters.empty(); }));
    fails_at = allocations + next;
    exempt = false;
    cancel.request_stop();
    exempt = true;
    ASSERT_TRUE(eventually([&] { return *told > 0; })) << "allocation " << next;
    fails_at = 0;
  }
  EXPECT_GT(failed, 3);
}

TEST(NoMemory, EndsNoProcessThatStartsAThread) {
  const Exempt me;
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    core::Courier courier(4);
    std::atomic<bool> go = false;
    std::atomic<int> done = 0;
    fails_at = allocations + next;
    int posted = 0;
    for (int i = 0; i < 4; ++i) {
      try {
        exempt = false;
        courier.post([&] {
          while (!go) std::this_thread::sleep_for(1ms);
          ++done;
        });
        ++posted;
      } catch (const std::bad_alloc&) {
      }
      exempt = true;
    }
    fails_at = 0;
    go = true;
    EXPECT_TRUE(eventually([&] { return done == posted; })) << "allocation " << next;
  }
  EXPECT_GT(failed, 3);
}

TEST(NoMemory, LeavesNoLeaseBetweenTwoModes) {
  auto locks = connect("memory:");
  const RwLock mutex(locks, "a", {.ttl = kTtl});
  const Exempt me;
  for (long next = 1, before = -1; before != failed; ++next) {
    before = failed;
    auto lease = mutex.read();
    fails_at = allocations + next;
    try {
      exempt = false;
      EXPECT_TRUE(lease.try_upgrade());
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    exempt = true;
    fails_at = 0;
    EXPECT_TRUE(lease.extend(kTtl)) << "allocation " << next;
    EXPECT_TRUE(lease.try_upgrade()) << "allocation " << next;
    EXPECT_EQ(lease.release(), LeaseState::released) << "allocation " << next;
    ASSERT_TRUE(is_free(locks)) << "allocation " << next;
  }
  EXPECT_GT(failed, 5);
}

TEST(NoMemory, LeavesNoLeaseThatIsReleasedInTheBackground) {
  auto locks = connect("memory:");
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  with_each_failing(locks, [&] {
    auto lease = mutex.acquire();
    lease.async_release([](LeaseState) {});
  });
}

/// How many wait and hold, by what is observed.
class Balance final : public Observer {
 public:
  void on(const Observation& seen) noexcept override {
    switch (seen.event) {
      case Event::asked:
        ++waiting;
        break;
      case Event::granted:
        --waiting;
        ++held;
        break;
      case Event::timed_out:
      case Event::refused:
        --waiting;
        break;
      case Event::lost:
      case Event::released:
      case Event::release_failed:
        --held;
        break;
      default:
        break;
    }
  }
  std::atomic<int> waiting = 0, held = 0;
};

TEST(NoMemory, LeavesNoStoryWithoutAnEnd) {
  const auto seen = std::make_shared<Balance>();
  Client locks(memory_store(), {.observer = seen});
  const Mutex mutex(locks, "a", {.ttl = kTtl});
  const auto balanced = [&] {
    const Exempt me;
    EXPECT_TRUE(eventually([&] { return seen->waiting == 0 && seen->held == 0; }))
        << "waiting: " << seen->waiting << ", held: " << seen->held;
    seen->waiting = seen->held = 0;
  };
  with_each_failing(locks, [&] {
    balanced();
    auto lease = mutex.acquire();
  });
  with_each_failing(locks, [&] {
    balanced();
    auto lease = mutex.acquire();
    (void)lease.release();
  });
  balanced();
}

}  // namespace
}  // namespace interlock
