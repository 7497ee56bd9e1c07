// A writer turns into a reader without a gap; a reader may try to become the writer, and two that
// try don't deadlock.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Changes);

TEST_P(Changes, AWriterBecomesAReaderWithoutAGap) {
  COVERS(Rule<1>, Rule<3>);
  const RwLock lock(client(), "r");
  auto writer = lock.write();
  auto other_writer = queue_up(lock.writer());
  ASSERT_TRUE(writer.downgrade());
  EXPECT_TRUE(writer);
  EXPECT_FALSE(other_writer.over());
  EXPECT_EQ(look("r").holders.at(0).mode, Mode::shared);
  writer.release();
  EXPECT_TRUE(other_writer.lease());
}

TEST_P(Changes, ADowngradeLetsWaitingReadersIn) {
  COVERS(Rule<3>, Rule<4>);
  const RwLock lock(client(), "r");
  auto writer = lock.write();
  auto reader = queue_up(lock.reader());
  ASSERT_TRUE(writer.downgrade());
  EXPECT_TRUE(reader.lease());
  EXPECT_EQ(writer.release(), LeaseState::released);
}

TEST_P(Changes, ALoneReaderBecomesTheWriter) {
  COVERS(Rule<1>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  ASSERT_TRUE(reader.try_upgrade());
  EXPECT_FALSE(lock.try_read());
  EXPECT_EQ(look("r").holders.at(0).mode, Mode::exclusive);
  EXPECT_EQ(reader.release(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Changes, AnUpgradeGoesAheadOfTheQueueThatWaitsForIt) {
  COVERS(Rule<3>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  auto writer = queue_up(lock.writer());
  EXPECT_TRUE(reader.try_upgrade());
  EXPECT_FALSE(writer.over());
  reader.release();
  EXPECT_TRUE(writer.lease());
}

TEST_P(Changes, AnUpgradeIsRefusedWhileAnotherReads) {
  COVERS(Rule<1>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  const auto other = lock.read();
  EXPECT_FALSE(reader.try_upgrade());
  EXPECT_TRUE(reader) << "keeps its shared lease";
  EXPECT_FALSE(reader.try_upgrade_for(100ms));
  EXPECT_TRUE(reader);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
  EXPECT_EQ(holders("r"), 2U);
  EXPECT_TRUE(lock.try_read()) << "nobody is held back any more";
}

TEST_P(Changes, AWaitingUpgradeHoldsBackNewReadersAndIsServed) {
  COVERS(Rule<3>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  auto other = lock.read();
  auto upgrading =
      std::async(std::launch::async, [&] { return reader.try_upgrade_for(kPatience); });
  EXPECT_TRUE(eventually([&] { return !lock.try_read(); }));
  EXPECT_EQ(upgrading.wait_for(0s), std::future_status::timeout);
  other.release();
  EXPECT_TRUE(upgrading.get());
  EXPECT_EQ(look("r").holders.at(0).mode, Mode::exclusive);
}

TEST_P(Changes, OfTwoThatUpgradeTheSecondIsRefusedAndKeepsReading) {
  COVERS(Rule<3>, Rule<1>);
  const RwLock lock(client(), "r");
  auto first = lock.read();
  auto second = lock.read();
  auto upgrading = std::async(std::launch::async, [&] { return first.try_upgrade_for(kPatience); });
  ASSERT_TRUE(eventually([&] { return !lock.try_read(); }));
  EXPECT_FALSE(second.try_upgrade_for(kPatience)) << "waiting would never end";
  EXPECT_TRUE(second);
  second.release();
  EXPECT_TRUE(upgrading.get());
}

TEST_P(Changes, AtTheSeamWeakerIsAtOnceAndStrongerWaitsForTheOthers) {
  COVERS(Rule<1>, Rule<9>);
  Seam seam(store().open());
  const auto me = claim_of({shared("r")});
  const auto other = claim_of({shared("r")});
  const auto late = claim_of({shared("r")});
  const auto stronger = instead_of(me, {exclusive("r")});
  const auto weaker = instead_of(stronger, {shared("r")});
  ASSERT_EQ(seam.acquire(me).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(other).verdict, Verdict::granted);
  EXPECT_EQ(seam.try_acquire(stronger).verdict, Verdict::busy);
  EXPECT_EQ(seam.acquire(me).verdict, Verdict::granted) << "still a reader";
  EXPECT_EQ(seam.acquire(stronger).verdict, Verdict::queued);
  EXPECT_EQ(seam.acquire(instead_of(other, {exclusive("r")})).verdict, Verdict::busy)
      << "each would wait for the other";
  EXPECT_EQ(seam.acquire(late).verdict, Verdict::queued);
  EXPECT_EQ(seam.renew(me).verdict, Verdict::granted) << "it holds what it had meanwhile";
  seam.release(other);
  EXPECT_EQ(seam.acquire(stronger).verdict, Verdict::granted);
  EXPECT_EQ(seam.acquire(late).verdict, Verdict::queued);
  EXPECT_EQ(seam.renew(me).verdict, Verdict::lost) << "another owner has it now";
  EXPECT_EQ(seam.acquire(weaker).verdict, Verdict::granted);
  EXPECT_EQ(seam.acquire(late).verdict, Verdict::granted);
  EXPECT_EQ(holders("r"), 2U);
}

TEST_P(Changes, WhatHasEndedCantBeTakenOver) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto me = claim_of("r");
  EXPECT_EQ(seam.acquire(instead_of(me, {shared("r")})).verdict, Verdict::lost);
  EXPECT_TRUE(nothing_left());
  const auto other = claim_of({shared("r")});
  ASSERT_EQ(seam.acquire(other).verdict, Verdict::granted);
  EXPECT_EQ(seam.try_acquire(instead_of(me, {exclusive("r")})).verdict, Verdict::lost);
  EXPECT_EQ(holders("r"), 1U);
}

TEST_P(Changes, ALateCopyOfATakeoverChangesNothing) {
  COVERS(Rule<9>);
  Seam seam(store().open());
  const auto reader = claim_of({shared("r")});
  const auto writer = instead_of(reader, {exclusive("r")});
  const auto reader_again = instead_of(writer, {shared("r")});
  for (const auto& claim : {reader, writer, reader_again}) {
    ASSERT_EQ(seam.acquire(claim).verdict, Verdict::granted);
  }
  EXPECT_EQ(seam.acquire(writer).verdict, Verdict::lost);
  EXPECT_EQ(look("r").holders.at(0).mode, Mode::shared);
  EXPECT_EQ(holders("r"), 1U);
}

TEST_P(Changes, ReleaseForgetsTheWishToo) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  const auto me = claim_of({shared("r")});
  const auto other = claim_of({shared("r")});
  seam.acquire(me);
  seam.acquire(other);
  const auto wish = instead_of(me, {exclusive("r")});
  ASSERT_EQ(seam.acquire(wish).verdict, Verdict::queued);
  EXPECT_EQ(seam.release(wish).verdict, Verdict::queued);
  EXPECT_EQ(waiters("r"), 0U);
  EXPECT_EQ(holders("r"), 2U);
  seam.release(me);
  EXPECT_EQ(holders("r"), 1U);
}

TEST_P(Changes, ALostLeaseCantChange) {
  COVERS(Rule<7>);
  auto lease = RwLock(client(), "r").write();
  store().break_hold("r");
  EXPECT_FALSE(lease.downgrade());
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_FALSE(lease.try_upgrade());
}

}  // namespace
}  // namespace interlock::conformance
