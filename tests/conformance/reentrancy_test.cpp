// Rule 12: not re-entrant, unless an identity is given.
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Reentrancy);

const Options kMe{.identity = "me"};
const Options kYou{.identity = "you"};

TEST_P(Reentrancy, WithoutAnIdentityTheSameThreadIsBusyToo) {
  COVERS(Rule<12>);
  const Mutex mutex(client(), "r");
  const auto lease = mutex.acquire();
  EXPECT_EQ(mutex.try_acquire().outcome(), Outcome::busy);
}

TEST_P(Reentrancy, TheSameIdentityEntersAgain) {
  COVERS(Rule<12>, Case<27>);
  const Mutex here(client(), "r", kMe);
  const Mutex there(client(), "r", kMe);
  const auto first = here.acquire();
  const auto second = here.try_acquire();
  const auto elsewhere = there.try_acquire();
  EXPECT_TRUE(second);
  EXPECT_TRUE(elsewhere);
  EXPECT_EQ(holders("r"), 3U);
  EXPECT_EQ(look("r").holders.at(0).who.identity, "me");
  EXPECT_EQ(Mutex(client(), "r", kYou).try_acquire().outcome(), Outcome::busy);
  EXPECT_EQ(Mutex(client(), "r").try_acquire().outcome(), Outcome::busy);
}

TEST_P(Reentrancy, OnlyTheLastReleaseFrees) {
  COVERS(Rule<12>);
  const auto locks = client();
  const Mutex mutex(locks, "r", kMe);
  const Mutex other(locks, "r", kYou);
  auto first = mutex.acquire();
  auto second = mutex.acquire();
  auto waiting = queue_up(other);
  EXPECT_EQ(first.release(), LeaseState::released);
  EXPECT_TRUE(second);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(waiting.over());
  EXPECT_EQ(second.release(), LeaseState::released);
  EXPECT_TRUE(waiting.lease());
}

TEST_P(Reentrancy, ReentryIsNotHeldUpByThoseWhoWait) {
  COVERS(Rule<12>, Rule<3>);
  // The waiter waits for the holder: would the holder's second claim stand behind it, both were
  // stuck.
  const auto locks = client();
  const Mutex mutex(locks, "r", kMe);
  auto first = mutex.acquire();
  auto waiting = queue_up(Mutex(locks, "r", kYou));
  auto second = mutex.try_acquire();
  EXPECT_TRUE(second);
  auto third = mutex.try_acquire_for(5s);
  EXPECT_TRUE(third);
  EXPECT_FALSE(waiting.over());
  first.release();
  if (second) second->release();
  if (third) third->release();
  EXPECT_TRUE(waiting.lease());
}

TEST_P(Reentrancy, AReaderOfTheSameIdentityMayWrite) {
  COVERS(Rule<12>);
  const auto locks = client();
  const RwLock mine(locks, "r", kMe);
  const auto reading = mine.read();
  EXPECT_TRUE(mine.try_write());
  const auto stranger = RwLock(locks, "r").try_read();
  EXPECT_TRUE(stranger);
  EXPECT_EQ(mine.try_write().outcome(), Outcome::busy) << "a stranger reads";
}

TEST_P(Reentrancy, FencesOfClaimsThatAreTakenAtOnceDoNotGoBack) {
  COVERS(Rule<12>, Rule<5>);
  if (!client().traits().fences) GTEST_SKIP() << "this store has no fences";
  struct Grant {
    TimePoint asked, told;
    Fence fence;
  };
  std::mutex mutex;
  std::vector<Grant> grants;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, locks = client()] {
      const Mutex mine(locks, "r", kMe);
      for (int round = 0; round < 10; ++round) {
        const auto asked = BootClock::now();
        const auto lease = mine.acquire();
        const std::lock_guard lock(mutex);
        grants.push_back({asked, BootClock::now(), lease.fence()});
      }
    });
  }
  threads.clear();
  ASSERT_EQ(grants.size(), 40U);
  for (const auto& earlier : grants) {
    for (const auto& later : grants) {
      if (earlier.told < later.asked) {
        EXPECT_LE(earlier.fence, later.fence);
      }
    }
  }
}

// Its holds have different fences where one of them came to write.
TEST_P(Reentrancy, AnInnerHoldGetsTheLargestFenceOfItsIdentity) {
  COVERS(Rule<12>, Rule<5>);
  Seam seam(store().open());
  if (!seam.traits().fences) GTEST_SKIP() << "this store has no fences";
  const auto fence = [&seam](const Claim& claim) { return seam.acquire(claim).fences.at(0); };
  const auto reads = claim_of({shared("r")}, 30s, "me");
  const auto writes = claim_of({exclusive("r")}, 30s, "me");
  auto reads_again = claim_of({shared("r")}, 30s, "me");
  reads_again.instead_of = writes.owner;
  fence(reads);
  const auto largest = fence(writes);
  EXPECT_GE(fence(claim_of({shared("r")}, 30s, "me")), largest);
  EXPECT_EQ(fence(reads_again), largest) << "a downgrade keeps it";
  EXPECT_GE(fence(claim_of({shared("r")}, 30s, "me")), largest);
}

TEST_P(Reentrancy, SlotsAreCountedWhoeverTakesThem) {
  COVERS(Rule<12>, Rule<1>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const Semaphore semaphore(client(), "r", 2, kMe);
  const auto first = semaphore.acquire();
  const auto second = semaphore.acquire();
  EXPECT_EQ(semaphore.try_acquire().outcome(), Outcome::busy);
}

TEST_P(Reentrancy, SetsOfOneIdentityOverlap) {
  COVERS(Rule<12>, Rule<2>);
  const auto locks = client();
  auto first = MultiLock(locks, {"a", "b"}, kMe).acquire();
  auto second = MultiLock(locks, {"b", "c"}, kMe).try_acquire();
  ASSERT_TRUE(second);
  first.release();
  EXPECT_TRUE(Mutex(locks, "a").try_acquire());
  EXPECT_FALSE(Mutex(locks, "b").try_acquire());
  second->release();
  EXPECT_TRUE(Mutex(locks, "b").try_acquire());
}

}  // namespace
}  // namespace interlock::conformance
