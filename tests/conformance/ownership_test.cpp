// Rule 8: renew never creates, release never deletes another's; both say what they found.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Ownership);

// Rows 1.1 and 2.4.
TEST_P(Ownership, AStrangerCantRelease) {
  COVERS(Rule<8>, Case<7>);
  const auto lease = Mutex(client(), "r").acquire();
  Seam seam(store().open());
  EXPECT_EQ(seam.release(claim_of("r")).verdict, Verdict::lost);
  EXPECT_FALSE(client().evict("r", Owner::random()));
  EXPECT_EQ(look("r").holders.at(0).owner, lease.owner());
  EXPECT_FALSE(Mutex(client(), "r").try_acquire());
}

TEST_P(Ownership, AStrangerCantRenew) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto holder = claim_of("r", 30s);
  ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
  EXPECT_EQ(seam.renew(claim_of("r", 600s)).verdict, Verdict::lost);
  EXPECT_LE(look("r").holders.at(0).remaining, 30s);
  EXPECT_EQ(holders("r"), 1U);
}

TEST_P(Ownership, RenewNeverCreates) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto claim = claim_of("r");
  EXPECT_EQ(seam.renew(claim).verdict, Verdict::lost);
  EXPECT_TRUE(nothing_left());

  ASSERT_EQ(seam.acquire(claim).verdict, Verdict::granted);
  ASSERT_EQ(seam.release(claim).verdict, Verdict::granted);
  EXPECT_EQ(seam.renew(claim).verdict, Verdict::lost);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Ownership, RenewDoesNotTurnAWaiterIntoAHolder) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto holder = claim_of("r");
  const auto waiter = claim_of("r");
  ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(waiter).verdict, Verdict::queued);
  seam.release(holder);
  EXPECT_EQ(seam.renew(waiter).verdict, Verdict::lost);
  EXPECT_EQ(holders("r"), 0U);
}

TEST_P(Ownership, RenewOfASetThatIsNotWholeChangesNothing) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto both = claim_of({exclusive("a"), exclusive("b")}, 30s);
  ASSERT_EQ(seam.acquire(both).verdict, Verdict::granted);
  ASSERT_EQ(seam.release(changed(both, {exclusive("b")})).verdict, Verdict::granted);
  auto longer = both;
  longer.ttl = 600s;
  EXPECT_EQ(seam.renew(longer).verdict, Verdict::lost);
  if (seam.traits().atomic_claims) {
    EXPECT_LE(look("a").holders.at(0).remaining, 30s);
  }
  EXPECT_EQ(holders("b"), 0U);
}

TEST_P(Ownership, ReleaseSaysWhatItFound) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto holder = claim_of("r");
  const auto waiter = claim_of("r");
  seam.acquire(holder);
  seam.acquire(waiter);
  EXPECT_EQ(seam.release(waiter).verdict, Verdict::queued);
  EXPECT_EQ(seam.release(waiter).verdict, Verdict::lost);
  EXPECT_EQ(seam.release(holder).verdict, Verdict::granted);
  EXPECT_EQ(seam.release(holder).verdict, Verdict::lost);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Ownership, ALateReleaseLeavesTheSuccessorAlone) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto expired = claim_of("r", 100ms);
  ASSERT_EQ(seam.acquire(expired).verdict, Verdict::granted);
  const auto successor = Mutex(client(), "r").acquire();
  EXPECT_EQ(seam.release(expired).verdict, Verdict::lost);
  EXPECT_EQ(seam.renew(expired).verdict, Verdict::lost);
  EXPECT_EQ(look("r").holders.at(0).owner, successor.owner());
}

// Row 3.1.
TEST_P(Ownership, ReleasingTwiceIsFine) {
  COVERS(Rule<8>, Case<22>);
  auto lease = Mutex(client(), "r").acquire();
  EXPECT_EQ(lease.release(), LeaseState::released);
  const auto next = Mutex(client(), "r").acquire();
  EXPECT_NO_THROW(lease.release());
  EXPECT_FALSE(lease);
  EXPECT_EQ(look("r").holders.at(0).owner, next.owner());
}

TEST_P(Ownership, ReleasingNothingOrTheUnknownIsNoError) {
  COVERS(Rule<8>, Case<32>);
  Lease nothing;
  EXPECT_EQ(nothing.release(), LeaseState::released);
  EXPECT_EQ(nothing.state(), LeaseState::released);
  auto lease = MultiLock(client(), {"a", "b"}).acquire();
  EXPECT_NO_THROW(lease.release({}));
  EXPECT_NO_THROW(lease.release({"never heard of"}));
  EXPECT_TRUE(lease);
  EXPECT_EQ(holders("a") + holders("b"), 2U);
  EXPECT_FALSE(client().evict("never heard of", Owner::random()));
}

// Row 3.6.
TEST_P(Ownership, OwnersAreFreshForEveryAcquisition) {
  COVERS(Rule<8>);
  const Mutex mutex(client(), "r");
  std::set<Owner> seen;
  for (int i = 0; i < 20; ++i) {
    const auto lease = mutex.acquire();
    EXPECT_FALSE(lease.owner().empty());
    EXPECT_TRUE(seen.insert(lease.owner()).second);
  }
}

TEST_P(Ownership, ALeaseBelongsToWhoeverHasTheObject) {
  COVERS(Rule<12>);
  const Mutex mutex(client(), "r");
  auto lease = mutex.acquire();
  std::thread([moved = std::move(lease)]() mutable {
    EXPECT_EQ(moved.release(), LeaseState::released);
  }).join();
  EXPECT_TRUE(mutex.try_acquire());
}

TEST_P(Ownership, ALeaseMayOutliveTheLockAndTheClientObject) {
  COVERS(Rule<12>);
  Lease lease;
  {
    const Mutex mutex(client(), "r");
    lease = mutex.acquire();
  }
  EXPECT_TRUE(lease);
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_EQ(lease.release(), LeaseState::released);
}

}  // namespace
}  // namespace interlock::conformance
