#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(Fenced);

TEST_P(Fenced, AHolderThatSleptThroughItsLeaseIsRefused) {
  FencedValue<std::string> report("empty");
  // Nobody renews it: as if its process stood still.
  const auto asleep = Mutex(client(), "report", {.ttl = 500ms, .renew = false}).acquire();
  EXPECT_TRUE(report.write(asleep, "draft"));
  const auto next = Mutex(client(), "report").acquire();
  EXPECT_EQ(report.read(next), "draft");
  EXPECT_FALSE(report.write(asleep, "late")) << "after the other one has only read";
  EXPECT_FALSE(report.read(asleep));
  EXPECT_TRUE(report.write(next, "final"));
  EXPECT_EQ(report.read(next), "final");
}

// Two readers that are both alive have different fences.
TEST_P(Fenced, LeasesThatSeveralHaveAtOnceAreRefused) {
  const auto locks = client();
  FencedValue<std::string> report("empty");
  const auto refused = [&](const Lease& lease) {
    int errors = 0;
    try {
      (void)report.read(lease);
    } catch (const Error& error) {
      errors += error.errc() == Errc::unsupported ? 1 : 0;
      EXPECT_EQ(error.resource(), lease.resource());
    }
    try {
      (void)report.write(lease, "mine");
    } catch (const Error& error) {
      errors += error.errc() == Errc::unsupported ? 1 : 0;
    }
    return errors == 2;
  };
  auto reader = RwLock(locks, "report").read();
  EXPECT_TRUE(refused(reader));
  EXPECT_TRUE(refused(Semaphore(locks, "printers", 2).acquire()));
  ASSERT_TRUE(reader.try_upgrade());
  EXPECT_EQ(exclusive_fence(reader), reader.fence());
  EXPECT_EQ(report.read(reader), "empty");
}

TEST(FenceGate, LetsInLargerOnesAndOfEqualOnesTheSameOwner) {
  FenceGate gate;
  EXPECT_TRUE(gate.admit({17}, "a"));
  EXPECT_TRUE(gate.admit({17}, "a"));
  EXPECT_FALSE(gate.admit({17}, "b"));
  EXPECT_FALSE(gate.admit({16}, "a"));
  EXPECT_TRUE(gate.admit({18}, "b"));
  EXPECT_FALSE(gate.admit({17}, "a"));
  EXPECT_EQ(gate.newest(), Fence{18});
}

TEST(SqlFence, IsTextForAnyPlaceholders) {
  const auto sql = sql_fence(":f", ":o");
  EXPECT_EQ(sql.assign, "fence = :f, fence_owner = :o");
  EXPECT_EQ(sql.admits, "(fence < :f OR (fence = :f AND fence_owner = :o))");
}

}  // namespace
}  // namespace interlock::recipes
