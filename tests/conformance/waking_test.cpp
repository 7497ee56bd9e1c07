// Rule 4: a release wakes exactly the next in line, and a lost wake costs a bounded delay.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Waking);

/// A client whose waiters look around every now and then. (The memory store's take ten seconds.)
std::unique_ptr<Backend> impatient(std::unique_ptr<Backend> store, std::shared_ptr<Wire> wire) {
  auto wired = std::make_unique<Wired>(std::move(store), std::move(wire), kPatience);
  wired->adjust().heartbeat = std::min<Duration>(wired->traits().heartbeat, 1s);
  return wired;
}

TEST_P(Waking, AReleaseWakesExactlyTheNext) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  for (const std::string host : {"", "elsewhere"}) {
    SCOPED_TRACE(host);
    const auto claim = [&host] { return from_host(claim_of("r"), host); };
    const auto holder = claim();
    const std::vector<Claim> line{claim(), claim(), claim()};
    ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
    for (const auto& waiter : line) ASSERT_EQ(seam.acquire(waiter).verdict, Verdict::queued);
    for (const auto& waiter : line) EXPECT_FALSE(seam.woken(waiter.owner));

    seam.release(holder);
    EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(line[0].owner); }));
    seam.idle(50ms);
    EXPECT_FALSE(seam.woken(line[1].owner));
    EXPECT_FALSE(seam.woken(line[2].owner));
    for (const auto& waiter : {line[2], line[1], line[0]}) seam.release(waiter);
  }
}

TEST_P(Waking, TheNextIsWokenInWhicheverClientItWaits) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam here(store().open());
  Seam there(store().open());
  here.begin_listening();
  there.begin_listening();
  const auto holder = claim_of("r");
  const auto next = claim_of("r");
  const auto last = claim_of("r");
  ASSERT_EQ(here.acquire(holder).verdict, Verdict::granted);
  ASSERT_EQ(there.acquire(next).verdict, Verdict::queued);
  ASSERT_EQ(here.acquire(last).verdict, Verdict::queued);
  here.release(holder);
  EXPECT_TRUE(eventually([&] { return there.idle(1ms), there.woken(next.owner); }));
  EXPECT_FALSE(here.woken(last.owner));
}

TEST_P(Waking, AllReadersAtTheHeadAreWokenAndNoWriterBehindThem) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  const auto writer = claim_of("r");
  const auto reader1 = claim_of({shared("r")});
  const auto reader2 = claim_of({shared("r")});
  const auto next_writer = claim_of("r");
  const auto late_reader = claim_of({shared("r")});
  ASSERT_EQ(seam.acquire(writer).verdict, Verdict::granted);
  for (const auto& claim : {reader1, reader2, next_writer, late_reader}) {
    ASSERT_EQ(seam.acquire(claim).verdict, Verdict::queued);
  }
  seam.release(writer);
  EXPECT_TRUE(eventually(
      [&] { return seam.idle(1ms), seam.woken(reader1.owner) && seam.woken(reader2.owner); }));
  EXPECT_FALSE(seam.woken(next_writer.owner));
  EXPECT_FALSE(seam.woken(late_reader.owner));
}

// Readers of its own identity are not in a writer's way, and it may pass a writer that has to wait for them.
// The last reader that is in its way may have an identity, too, or none.
TEST_P(Waking, TheLastForeignReaderWakesAWriterWhoseIdentityReadsAsWell) {
  COVERS(Rule<4>, Rule<12>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  for (const std::string stranger : {"", "you"}) {
    SCOPED_TRACE(stranger);
    const auto own_reader = claim_of({shared("r")}, 30s, "me");
    const auto foreign_reader = claim_of({shared("r")}, 30s, stranger);
    const auto foreign_writer = claim_of("r");
    const auto own_writer = claim_of({exclusive("r")}, 30s, "me");
    ASSERT_EQ(seam.acquire(own_reader).verdict, Verdict::granted);
    ASSERT_EQ(seam.acquire(foreign_reader).verdict, Verdict::granted);
    ASSERT_EQ(seam.acquire(foreign_writer).verdict, Verdict::queued);
    ASSERT_EQ(seam.acquire(own_writer).verdict, Verdict::queued);
    seam.release(foreign_reader);
    EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(own_writer.owner); }));
    EXPECT_EQ(seam.acquire(own_writer).verdict, Verdict::granted);
    for (const auto& claim : {foreign_writer, own_writer, own_reader}) seam.release(claim);
  }
}

// The first one waits for another lock, too, and the second one need not wait for it.
TEST_P(Waking, AllWaitersWhoseIdentityHoldsTheLockAreWokenByTheLastOther) {
  COVERS(Rule<4>, Rule<12>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  const auto mine = claim_of({shared("r")}, 30s, "me");
  const auto other = claim_of({shared("r")});
  const auto elsewhere = claim_of("c");
  const auto both = claim_of({exclusive("c"), exclusive("r")}, 30s, "me");
  const auto one = claim_of({exclusive("r")}, 30s, "me");
  for (const auto& claim : {mine, other, elsewhere})
    ASSERT_EQ(seam.acquire(claim).verdict, Verdict::granted);
  for (const auto& claim : {both, one}) ASSERT_EQ(seam.acquire(claim).verdict, Verdict::queued);
  seam.release(other);
  EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(one.owner); }));
  EXPECT_EQ(seam.acquire(one).verdict, Verdict::granted);
}

TEST_P(Waking, AWaiterThatLeavesWakesWhomItHeldBack) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  const auto reader = claim_of({shared("r")});
  const auto writer = claim_of("r");
  const auto held_back = claim_of({shared("r")});
  ASSERT_EQ(seam.acquire(reader).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(writer).verdict, Verdict::queued);
  ASSERT_EQ(seam.acquire(held_back).verdict, Verdict::queued);
  EXPECT_EQ(seam.release(writer).verdict, Verdict::queued);
  EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(held_back.owner); }));
}

TEST_P(Waking, AReleaseOfSeveralWakesTheFirstInEachLine) {
  COVERS(Rule<4>, Rule<2>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  for (const std::string name : {"a", "b"}) seam.begin_listening(name);
  const auto holder = claim_of({exclusive("a"), exclusive("b")});
  const std::vector<Claim> first{claim_of("a"), claim_of("b")};
  const std::vector<Claim> last{claim_of("a"), claim_of("b")};
  ASSERT_EQ(seam.acquire(holder).verdict, Verdict::granted);
  for (const auto& line : {first, last}) {
    for (const auto& waiter : line) ASSERT_EQ(seam.acquire(waiter).verdict, Verdict::queued);
  }
  seam.release(holder);
  for (const auto& waiter : first)
    EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(waiter.owner); }));
  seam.idle(50ms);
  for (const auto& waiter : last) EXPECT_FALSE(seam.woken(waiter.owner));
}

// Enough are left in the one semaphore, so only the other one is in its way.
TEST_P(Waking, AWaiterForSlotsOfSeveralIsWokenByThoseThatAreInItsWay) {
  COVERS(Rule<4>, Rule<2>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening("b");
  if (!seam.traits().slots) GTEST_SKIP() << "this store has no semaphores";
  const auto some = claim_of({slots("a", 1, 3)});
  const auto most = claim_of({slots("b", 2, 3)});
  const auto waits = claim_of({slots("a", 2, 3), slots("b", 2, 3)});
  ASSERT_EQ(seam.acquire(some).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(most).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(waits).verdict, Verdict::queued);
  seam.release(most);
  EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(waits.owner); }));
}

TEST_P(Waking, AnUpgradeThatHasLostItsLockWakesWhomItHeldBack) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  Seam seam(store().open());
  seam.begin_listening();
  const auto reader = claim_of({shared("r")});
  const auto other = claim_of({shared("r")});
  const auto upgrade = instead_of(reader, {exclusive("r")});
  const auto held_back = claim_of({shared("r")});
  ASSERT_EQ(seam.acquire(reader).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(other).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(upgrade).verdict, Verdict::queued);
  ASSERT_EQ(seam.acquire(held_back).verdict, Verdict::queued);
  seam.release(reader);
  EXPECT_EQ(seam.acquire(upgrade).verdict, Verdict::lost);
  EXPECT_TRUE(eventually([&] { return seam.idle(1ms), seam.woken(held_back.owner); }));
}

TEST_P(Waking, ALostWakeCostsABoundedDelayAndNotAHang) {
  COVERS(Rule<4>);
  const auto wire = std::make_shared<Wire>();
  wire->deafen();
  const Client deaf(impatient(store().open(), wire));
  const auto other = client();
  auto lease = Mutex(other, "r").acquire();
  auto waiting = queue_up(Mutex(deaf, "r"));
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

TEST_P(Waking, AnExpiryIsNoticedByTheWaiterThoughNobodyTells) {
  COVERS(Rule<4>, Rule<6>);
  Seam seam(store().open());
  ASSERT_EQ(seam.acquire(claim_of("r", 200ms)).verdict, Verdict::granted);
  const auto wire = std::make_shared<Wire>();
  wire->deafen();
  const Client deaf(impatient(store().open(), wire));
  EXPECT_TRUE(Mutex(deaf, "r").try_acquire_for(kPatience));
}

TEST_P(Waking, HandoffsAreToldAndNotFoundByPolling) {
  COVERS(Rule<4>);
  if (!store().faithful()) GTEST_SKIP() << "wakes get lost here on purpose";
  constexpr int kRounds = 100;
  const std::vector<Client> clients{client(), client()};
  const auto start = BootClock::now();
  {
    std::vector<std::jthread> players;
    for (const auto& locks : clients) {
      players.emplace_back([locks] {
        const Mutex mutex(locks, "r");
        for (int i = 0; i < kRounds; ++i) mutex.acquire().release();
      });
    }
  }
  EXPECT_LT(BootClock::now() - start,
            std::min<Duration>(kPatience, kRounds * clients[0].traits().heartbeat) / 2);
}

TEST_P(Waking, EverybodyInALongLineIsServed) {
  COVERS(Rule<3>, Rule<4>);
  const std::vector<Client> clients{client(), client(), client()};
  std::atomic<int> served = 0;
  std::vector<std::jthread> line;
  for (std::size_t i = 0; i < 30; ++i) {
    line.emplace_back([&, locks = clients[i % clients.size()]] {
      const auto lease = Mutex(locks, "r").acquire();
      served = served + 1;
    });
  }
  line.clear();
  EXPECT_EQ(served, 30);
}

}  // namespace
}  // namespace interlock::conformance
