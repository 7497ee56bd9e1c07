// Rule 5: fences only rise.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

class Fences : public Conformance {
 protected:
  void SetUp() override {
    if (client().traits().fences) return;
    const auto lease = Mutex(client(), "r").acquire();
    EXPECT_THROW(static_cast<void>(lease.fence()), Error) << "no fences: refused, not invented";
    GTEST_SKIP() << "this store has no fences";
  }

  /// One more grant of the resource; it has to be above the last.
  void next(const Lease& lease) { next(lease.fence()); }
  void next(Fence fence) {
    EXPECT_GT(fence, last_);
    last_ = fence;
  }

  Fence last_{};
};
INSTANTIATE_TEST_SUITE_P(, Fences, testing::ValuesIn(stores()), store_name);

TEST_P(Fences, RiseFromOneGrantToTheNext) {
  COVERS(Rule<5>);
  const std::vector<Client> clients{client(), client()};
  for (std::size_t i = 0; i < 20; ++i) next(Mutex(clients[i % 2], "r").acquire());
}

TEST_P(Fences, RiseFromOneWaiterToTheNext) {
  COVERS(Rule<5>);
  const auto locks = client();
  auto lease = Mutex(locks, "r").acquire();
  next(lease);
  std::vector<Waiting> line;
  for (int i = 0; i < 4; ++i) line.push_back(queue_up(Mutex(locks, "r")));
  lease.release();
  for (auto& waiting : line) next(waiting.lease());
}

TEST_P(Fences, RiseAfterAnExpiry) {
  COVERS(Rule<5>);
  Seam seam(store().open());
  const auto forgotten = seam.acquire(claim_of("r", 100ms));
  ASSERT_EQ(forgotten.verdict, Verdict::granted);
  next(forgotten.fences.at(0));
  next(Mutex(client(), "r").acquire());
}

TEST_P(Fences, RiseAfterAnEviction) {
  COVERS(Rule<5>);
  const auto evicted = Mutex(client(), "r").acquire();
  next(evicted);
  store().break_hold("r");
  next(Mutex(client(), "r").acquire());
}

TEST_P(Fences, RiseThoughTheStoreForgotTheName) {
  COVERS(Rule<5>);
  const auto locks = client();
  for (int i = 0; i < 3; ++i) {
    auto lease = Mutex(locks, "r").acquire();
    next(lease);
    lease.release();
    EXPECT_TRUE(nothing_left());
    for (int other = 0; other < 5; ++other) Mutex(locks, "other").acquire().release();
  }
}

TEST_P(Fences, RiseAfterARestart) {
  COVERS(Rule<5>);
  next(Mutex(client(), "r").acquire());
  store().restart();
  next(Mutex(client(), "r").acquire());
}

TEST_P(Fences, StayTheSameWhileALeaseLives) {
  COVERS(Rule<5>);
  const auto locks = client();
  auto lease = Mutex(locks, "r").acquire();
  const auto fence = lease.fence();
  EXPECT_TRUE(lease.extend(60s));
  EXPECT_EQ(lease.fence(), fence);
  EXPECT_EQ(lease.fence("r"), fence);
  EXPECT_EQ(look("r").holders.at(0).fence, fence);
}

TEST_P(Fences, EveryResourceOfASetHasItsOwn) {
  COVERS(Rule<5>, Rule<2>);
  const auto locks = client();
  const MultiLock both(locks, {"a", "b"});
  auto first = both.acquire();
  const auto a = first.fence("a");
  const auto b = first.fence("b");
  EXPECT_EQ(first.fence(), a);
  first.release();
  Mutex(locks, "a").acquire().release();
  const auto second = both.acquire();
  EXPECT_GT(second.fence("a"), a);
  EXPECT_GT(second.fence("b"), b);
  EXPECT_THROW(static_cast<void>(second.fence("c")), Error);
}

TEST_P(Fences, AWriterIsAboveAllReadersAndWritersBeforeIt) {
  COVERS(Rule<5>);
  const RwLock lock(client(), "r");
  for (int round = 0; round < 3; ++round) {
    auto writer = lock.write();
    next(writer);
    writer.release();
    auto reader1 = lock.read();
    auto reader2 = lock.read();
    EXPECT_GE(reader1.fence(), last_);
    EXPECT_GE(reader2.fence(), last_);
    last_ = std::max(reader1.fence(), reader2.fence());
  }
}

TEST_P(Fences, AnUpgradeIsANewGrant) {
  COVERS(Rule<5>);
  const RwLock lock(client(), "r");
  next(lock.write());
  auto reader = lock.read();
  const auto as_reader = reader.fence();
  ASSERT_TRUE(reader.try_upgrade());
  EXPECT_GT(reader.fence(), as_reader);
  next(reader);
}

}  // namespace
}  // namespace interlock::conformance
