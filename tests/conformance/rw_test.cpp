// Rules 1 and 3 for readers and writers (rows 2.7 and 2.8).
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(ReadersAndWriters);

// Rows 0.12 and 2.1.
TEST_P(ReadersAndWriters, TwoReadersReadTogether) {
  COVERS(Rule<1>, Case<12>);
  const auto first = RwLock(client(), "r").read();
  const auto second = RwLock(client(), "r").try_read();
  EXPECT_TRUE(second);
  EXPECT_EQ(holders("r"), 2U);
}

TEST_P(ReadersAndWriters, AWriterKeepsReadersAndWritersOut) {
  COVERS(Rule<1>, Case<13>);
  const auto writer = RwLock(client(), "r").write();
  const RwLock other(client(), "r");
  EXPECT_EQ(other.try_read().outcome(), Outcome::busy);
  EXPECT_EQ(other.try_write().outcome(), Outcome::busy);
}

TEST_P(ReadersAndWriters, AWriterGetsInOnlyAfterTheLastReader) {
  COVERS(Rule<3>, Case<14>);
  const RwLock lock(client(), "r");
  auto first = lock.read();
  auto second = lock.read();
  auto writer = queue_up(lock.writer());
  first.release();
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(writer.over());
  second.release();
  EXPECT_TRUE(writer.lease());
}

// Row 2.7.
TEST_P(ReadersAndWriters, AWaitingWriterHoldsBackLaterReaders) {
  COVERS(Rule<3>, Case<15>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  auto writer = queue_up(lock.writer());
  EXPECT_EQ(RwLock(client(), "r").try_read().outcome(), Outcome::busy);
  auto late = queue_up(lock.reader());
  reader.release();
  auto writing = writer.lease();
  EXPECT_FALSE(late.over());
  writing.release();
  EXPECT_TRUE(late.lease());
}

// Row 2.7.
TEST_P(ReadersAndWriters, AFailedOneShotWriteLeavesNoTrace) {
  COVERS(Rule<3>, Case<16>);
  const RwLock lock(client(), "r");
  const auto reader = lock.read();
  EXPECT_EQ(lock.try_write().outcome(), Outcome::busy);
  EXPECT_EQ(waiters("r"), 0U);
  EXPECT_TRUE(RwLock(client(), "r").try_read());
}

// Row 2.7.
TEST_P(ReadersAndWriters, WritersAreServedInOrderOfArrival) {
  COVERS(Rule<3>, Case<17>);
  const RwLock lock(client(), "r");
  auto reader = lock.read();
  auto first = queue_up(lock.writer());
  auto second = queue_up(RwLock(client(), "r").writer());
  reader.release();
  auto lease = first.lease();
  EXPECT_FALSE(second.over());
  lease.release();
  EXPECT_TRUE(second.lease());
}

TEST_P(ReadersAndWriters, AWriterBehindAWriterIsBeforeALaterReader) {
  COVERS(Rule<3>, Case<18>);
  const RwLock lock(client(), "r");
  auto writer = lock.write();
  auto next_writer = queue_up(lock.writer());
  auto reader = queue_up(lock.reader());
  writer.release();
  auto lease = next_writer.lease();
  EXPECT_FALSE(reader.over());
  lease.release();
  EXPECT_TRUE(reader.lease());
}

// Row 2.7.
TEST_P(ReadersAndWriters, ReadersThatCameFirstGoBeforeALaterWriter) {
  COVERS(Rule<3>);
  const RwLock lock(client(), "r");
  auto writer = lock.write();
  auto reader1 = queue_up(lock.reader());
  auto reader2 = queue_up(lock.reader());
  auto next_writer = queue_up(lock.writer());
  writer.release();
  auto reading1 = reader1.lease();
  auto reading2 = reader2.lease();
  EXPECT_FALSE(next_writer.over());
  reading1.release();
  reading2.release();
  EXPECT_TRUE(next_writer.lease());
}

// Row 2.7.
TEST_P(ReadersAndWriters, WhenAQueuedWriterGivesUpReadersProceed) {
  COVERS(Rule<3>, Case<19>);
  const RwLock lock(client(), "r");
  const auto reader = lock.read();
  auto writer = queue_up(lock.writer());
  auto late = queue_up(lock.reader());
  writer.cancel();
  EXPECT_FALSE(writer.attempt());
  EXPECT_TRUE(late.lease());
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(lock.try_read()); }));
}

// Row 2.8.
TEST_P(ReadersAndWriters, EachReadersLeaseExpiresOnItsOwn) {
  COVERS(Rule<6>, Rule<8>, Case<21>);
  Seam seam(store().open());
  (void)seam.inspect();  // connected: the time of the lease is not for that
  const auto forgotten = claim_of({shared("r")}, 200ms);
  ASSERT_EQ(seam.acquire(forgotten).verdict, Verdict::granted);
  const RwLock lock(client(), "r");
  auto lasting = lock.read();
  EXPECT_TRUE(eventually([&] { return holders("r") == 1; }));
  EXPECT_TRUE(lasting);
  lasting.release();
  const auto writer = lock.write();
  EXPECT_EQ(seam.renew(forgotten).verdict, Verdict::lost);
  EXPECT_EQ(look("r").holders.at(0).owner, writer.owner());
}

TEST_P(ReadersAndWriters, AnExpiredReaderLetsTheWriterIn) {
  COVERS(Rule<6>, Case<21>);
  Seam seam(store().open());
  (void)seam.inspect();  // connected: the time of the lease is not for that
  const auto forgotten = claim_of({shared("r")}, 200ms);
  ASSERT_EQ(seam.acquire(forgotten).verdict, Verdict::granted);
  EXPECT_TRUE(RwLock(client(), "r").try_write_for(kPatience / 2));
  EXPECT_EQ(seam.renew(forgotten).verdict, Verdict::lost);
}

// Row 2.8.
TEST_P(ReadersAndWriters, TwoReadersOfOneClientAreTwoHolders) {
  COVERS(Rule<1>, Rule<12>);
  const RwLock lock(client(), "r");
  auto first = lock.read();
  const auto second = lock.read();
  first.release();
  EXPECT_TRUE(second);
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_FALSE(RwLock(client(), "r").try_write());
}

// Row 2.1.
TEST_P(ReadersAndWriters, BoundedFormsAreBounded) {
  COVERS(Rule<10>);
  const RwLock lock(client(), "r");
  const auto writer = lock.write();
  EXPECT_EQ(lock.try_read_for(100ms).outcome(), Outcome::timed_out);
  EXPECT_EQ(lock.try_write_for(100ms).outcome(), Outcome::timed_out);
  EXPECT_EQ(lock.reader().try_acquire_times({.attempts = 2, .first = 1ms}).outcome(),
            Outcome::exhausted);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
}

}  // namespace
}  // namespace interlock::conformance
