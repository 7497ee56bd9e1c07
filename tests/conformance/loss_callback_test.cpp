// What a callback on lost() may do: whatever it likes, on a thread that does nothing else.
#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

class LossCallbacks : public Conformance {
 protected:
  /// Takes the lease away, as an operator does, and waits until the callback has run.
  void lose(Lease& lease, std::function<void()> callback) {
    std::promise<void> over;
    const std::stop_callback on_lost(lease.lost(), [&] {
      callback();
      over.set_value();
    });
    EXPECT_TRUE(client().evict(lease.resource(), lease.owner()));
    EXPECT_EQ(over.get_future().wait_for(kPatience), std::future_status::ready);
  }

  const Client locks_ = client();
};
INSTANTIATE_TEST_SUITE_P(, LossCallbacks, testing::ValuesIn(stores()), store_name);

TEST_P(LossCallbacks, MayWantAMutexThatAWaitingThreadHolds) {
  COVERS(Rule<7>, Rule<12>);
  auto taken = Mutex(client(), "taken").acquire();
  std::mutex mutex;
  std::atomic<std::thread::id> ran_on{};
  for (int i = 0; i < 3; ++i) {
    auto lease = Mutex(locks_, "lost", {.ttl = 1s}).acquire();
    std::promise<void> begun;
    std::promise<void> over;
    const std::stop_callback on_lost(lease.lost(), [&] {
      ran_on = std::this_thread::get_id();
      begun.set_value();
      { const std::lock_guard wants(mutex); }
      over.set_value();
    });
    {
      // Waiters lend their thread to the store, which learns of the loss on it, perhaps.
      const std::lock_guard holds(mutex);
      auto evicting = std::async(std::launch::async, [&] {
        EXPECT_TRUE(client().evict("lost", lease.owner()));
        EXPECT_TRUE(begun.get_future().wait_for(kPatience) == std::future_status::ready);
      });
      while (evicting.wait_for(0s) != std::future_status::ready)
        EXPECT_FALSE(Mutex(locks_, "taken").try_acquire_for(300ms));
    }
    EXPECT_EQ(over.get_future().wait_for(kPatience), std::future_status::ready);
    EXPECT_NE(ran_on, std::this_thread::get_id());
  }
}

TEST_P(LossCallbacks, MayReleaseAndAcquireAndLosesNoOtherLease) {
  COVERS(Rule<7>);
  auto lease = Mutex(locks_, "lost", {.ttl = 3s}).acquire();
  auto other = Mutex(locks_, "other").acquire();
  auto renewed = Mutex(locks_, "renewed", {.ttl = 6s}).acquire();
  const auto valid = renewed.valid_until();
  lose(lease, [&] {
    EXPECT_EQ(other.release(), LeaseState::released);
    EXPECT_TRUE(Mutex(locks_, "once").try_acquire());
    EXPECT_TRUE(Mutex(locks_, "more").acquire());
    EXPECT_TRUE(eventually([&] { return renewed.valid_until() > valid || !renewed; }));
  });
  EXPECT_TRUE(renewed);
}

TEST_P(LossCallbacks, MayBlockAndHoldsUpNoOtherLossAndNoRenewal) {
  COVERS(Rule<7>);
  auto first = Mutex(locks_, "first", {.ttl = 3s}).acquire();
  auto second = Mutex(locks_, "second", {.ttl = 3s}).acquire();
  auto renewed = Mutex(locks_, "renewed", {.ttl = 6s}).acquire();
  const auto valid = renewed.valid_until();
  lose(first, [&] {
    const auto second_lost = second.lost();
    EXPECT_TRUE(client().evict("second", second.owner()));
    EXPECT_TRUE(eventually([&] { return second_lost.stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return renewed.valid_until() > valid || !renewed; }));
  });
  EXPECT_TRUE(renewed);
}

TEST_P(LossCallbacks, MayLetGoOfTheClient) {
  COVERS(Rule<7>);
  struct All {
    Client locks;
    Lease lease;
  };
  auto locks = client();
  auto lease = Mutex(locks, "lost", {.ttl = 1s}).acquire();
  const auto owner = lease.owner();
  const auto lost = lease.lost();
  auto all = std::make_unique<All>(All{std::move(locks), std::move(lease)});
  std::promise<void> over;
  const std::stop_callback on_lost(lost, [&] {
    all.reset();
    over.set_value();
  });
  EXPECT_TRUE(client().evict("lost", owner));
  EXPECT_EQ(over.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace interlock::conformance
