// Rule 1: no two live leases conflict.
#include <atomic>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Exclusion);

// Rows 0.1 and 2.4.
TEST_P(Exclusion, ASecondOwnerIsToldBusy) {
  COVERS(Rule<1>, Case<1>);
  const auto a = client();
  const auto b = client();
  const auto lease = Mutex(a, "r").acquire();
  for (const auto& locks : {a, b}) {
    const auto attempt = Mutex(locks, "r").try_acquire();
    EXPECT_FALSE(attempt);
    EXPECT_EQ(attempt.outcome(), Outcome::busy);
    EXPECT_EQ(attempt.error().errc(), Errc::busy);
  }
  EXPECT_TRUE(lease);
  EXPECT_EQ(holders("r"), 1U);
}

// Row 0.1.
TEST_P(Exclusion, AfterAReleaseTheNextAcquiresAtOnce) {
  COVERS(Rule<1>, Case<5>);
  const auto a = client();
  const auto b = client();
  auto first = Mutex(a, "r").acquire();
  EXPECT_EQ(first.release(), LeaseState::released);
  const auto second = Mutex(b, "r").try_acquire();
  EXPECT_TRUE(second);
}

// Row 0.2.
TEST_P(Exclusion, ADroppedLeaseIsFree) {
  COVERS(Rule<1>, Rule<11>, Case<6>);
  const auto a = client();
  const auto b = client();
  { const auto lease = Mutex(a, "r").acquire(); }
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(Mutex(b, "r").try_acquire()); }));
}

TEST_P(Exclusion, AnAssignedLeaseGivesUpWhatItHeld) {
  COVERS(Rule<1>, Rule<11>);
  const auto a = client();
  auto lease = Mutex(a, "first").acquire();
  lease = Mutex(a, "second").acquire();
  EXPECT_EQ(lease.resource(), "second");
  EXPECT_TRUE(eventually([&] { return holders("first") == 0; }));
  EXPECT_EQ(holders("second"), 1U);
}

// Row 4.9.
TEST_P(Exclusion, FiveWorkersTakeTurnsWithoutOverlap) {
  COVERS(Rule<1>, Case<33>);
  std::atomic<int> inside = 0;
  std::atomic<int> turns = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 5; ++i) {
    workers.emplace_back([&, locks = client()] {
      const auto lease = Mutex(locks, "r").acquire();
      EXPECT_EQ(++inside, 1);
      std::this_thread::sleep_for(5ms);
      --inside;
      ++turns;
    });
  }
  workers.clear();
  EXPECT_EQ(turns, 5);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Exclusion, TwentyWorkersLoseNoIncrement) {
  COVERS(Rule<1>, Case<37>);
  const std::vector<Client> clients{client(), client(), client(), client()};
  std::atomic<int> counter = 0;  // read and written apart: the lock is what makes it one step
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < 20; ++i) {
    workers.emplace_back([&, locks = clients[i % clients.size()]] {
      const auto lease = Mutex(locks, "r").acquire();
      const int seen = counter;
      std::this_thread::yield();
      counter = seen + 1;
    });
  }
  workers.clear();
  EXPECT_EQ(counter, 20);
}

TEST_P(Exclusion, NamesThatOnlyLookAlikeAreDifferentLocks) {
  COVERS(Rule<1>);
  const auto locks = client();
  std::vector<Lease> leases;
  for (const auto* name : {"a", "A", "a ", " a", "a:b", "a:", "aa", "á", "a\xcc\x81"}) {
    auto attempt = Mutex(locks, name).try_acquire();
    ASSERT_TRUE(attempt) << '"' << name << '"';
    leases.push_back(std::move(*attempt));
  }
}

TEST_P(Exclusion, AResourceInUseAsOneKindRefusesAnother) {
  COVERS(Rule<1>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const auto a = client();
  const auto b = client();
  const auto expect_wrong_kind = [](const Acquirer& acquirer) {
    try {
      static_cast<void>(acquirer.try_acquire());
      FAIL() << "granted or busy, but the kinds don't go together";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::wrong_kind) << error.what();
      EXPECT_EQ(error.resource(), acquirer.resource());
    }
  };
  const auto mutex = Mutex(a, "mutex").acquire();
  expect_wrong_kind(Semaphore(b, "mutex", 3));
  const auto slot = Semaphore(a, "slots", 3).acquire();
  expect_wrong_kind(Mutex(b, "slots"));
  expect_wrong_kind(RwLock(b, "slots").reader());
}

TEST_P(Exclusion, AMutexAndAWriterAreTheSameKind) {
  COVERS(Rule<1>);
  const auto a = client();
  const auto b = client();
  auto lease = Mutex(a, "r").acquire();
  const RwLock other(b, "r");
  EXPECT_EQ(other.try_write().outcome(), Outcome::busy);
  EXPECT_EQ(other.try_read().outcome(), Outcome::busy);
  lease.release();
  const auto reader = other.read();
  EXPECT_EQ(Mutex(a, "r").try_acquire().outcome(), Outcome::busy);
}

TEST_P(Exclusion, AnIdleResourceMayBecomeAnotherKind) {
  COVERS(Rule<1>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const auto locks = client();
  Mutex(locks, "r").acquire().release();
  Semaphore(locks, "r", 3).acquire().release();
  Semaphore(locks, "r", 5).acquire().release();
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
}

}  // namespace
}  // namespace interlock::conformance
