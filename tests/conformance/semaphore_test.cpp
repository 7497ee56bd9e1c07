// Rule 1 for slots: never more than the capacity, and all have to agree on it.
#include <atomic>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

class Semaphores : public Conformance {
 protected:
  void SetUp() override {
    if (client().traits().slots) return;
    try {
      static_cast<void>(Semaphore(client(), "r", 3).try_acquire());
      ADD_FAILURE() << "no semaphores: refused, not granted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unsupported) << error.what();
    }
    GTEST_SKIP() << "this store has no semaphores";
  }
};
INSTANTIATE_TEST_SUITE_P(, Semaphores, testing::ValuesIn(stores()), store_name);

// Row 0.12.
TEST_P(Semaphores, SoManyAtOnceAndNoMore) {
  COVERS(Rule<1>);
  const Semaphore here(client(), "r", 3);
  const Semaphore there(client(), "r", 3);
  auto first = here.acquire();
  const auto second = there.acquire();
  const auto third = here.acquire();
  EXPECT_EQ(there.try_acquire().outcome(), Outcome::busy);
  EXPECT_EQ(look("r").capacity, 3U);
  first.release();
  EXPECT_TRUE(there.try_acquire());
}

TEST_P(Semaphores, WeightIsTakenWhole) {
  COVERS(Rule<1>, Rule<2>);
  const auto locks = client();
  const auto two = Semaphore(locks, "r", 5, {}, 2).acquire();
  EXPECT_FALSE(Semaphore(locks, "r", 5, {}, 4).try_acquire());
  const auto three = Semaphore(locks, "r", 5, {}, 3).try_acquire();
  EXPECT_TRUE(three);
  EXPECT_FALSE(Semaphore(locks, "r", 5).try_acquire());
}

TEST_P(Semaphores, ABigRequestIsNotStarvedBySmallOnes) {
  COVERS(Rule<3>);
  const auto locks = client();
  const Semaphore small(locks, "r", 3);
  auto first = small.acquire();
  auto second = small.acquire();
  auto big = queue_up(Semaphore(locks, "r", 3, {}, 3));
  EXPECT_EQ(small.try_acquire().outcome(), Outcome::busy)
      << "a slot is free, but a waiter is first";
  auto late = queue_up(small);
  first.release();
  second.release();
  auto lease = big.lease();
  EXPECT_FALSE(late.over());
  lease.release();
  EXPECT_TRUE(late.lease());
}

TEST_P(Semaphores, WhoeverFitsIsServed) {
  COVERS(Rule<3>, Rule<4>);
  const auto locks = client();
  auto all = Semaphore(locks, "r", 4, {}, 4).acquire();
  auto first = queue_up(Semaphore(locks, "r", 4, {}, 2));
  auto second = queue_up(Semaphore(locks, "r", 4, {}, 2));
  auto third = queue_up(Semaphore(locks, "r", 4, {}, 1));
  all.release();
  auto lease1 = first.lease();
  const auto lease2 = second.lease();
  EXPECT_FALSE(third.over());
  lease1.release();
  EXPECT_TRUE(third.lease());
}

TEST_P(Semaphores, AnotherCapacityIsAnErrorAndNotAWrongAnswer) {
  COVERS(Rule<1>);
  const auto lease = Semaphore(client(), "r", 3).acquire();
  try {
    static_cast<void>(Semaphore(client(), "r", 4).try_acquire());
    FAIL() << "they disagree on the capacity";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::wrong_capacity);
    EXPECT_EQ(error.resource(), "r");
  }
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_EQ(waiters("r"), 0U);
}

TEST_P(Semaphores, NeverMoreInsideThanTheCapacity) {
  COVERS(Rule<1>);
  std::atomic<unsigned> inside = 0;
  std::vector<std::jthread> workers;
  for (std::uint32_t worker = 0; worker < 6; ++worker) {
    workers.emplace_back([&, locks = client(), weight = 1 + worker % 3] {
      const Semaphore semaphore(locks, "r", 4, {}, weight);
      for (int i = 0; i < 8; ++i) {
        const auto lease = semaphore.acquire();
        EXPECT_LE(inside += weight, 4U);
        std::this_thread::yield();
        inside -= weight;
      }
    });
  }
  workers.clear();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::conformance
