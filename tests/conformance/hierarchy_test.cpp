// Names with slashes: holding "table" excludes every "table/…", and the other way round (row 4.8).
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Hierarchy);

// Row 4.8.
TEST_P(Hierarchy, ATableExcludesItsRowsWithoutTheRowsAskingForIt) {
  COVERS(Rule<1>);
  const auto locks = client();
  auto table = Mutex(locks, "table").acquire();
  EXPECT_FALSE(Mutex(locks, "table/row").try_acquire());
  EXPECT_FALSE(RwLock(locks, "table/row").try_read());
  EXPECT_FALSE(Mutex(locks, "table/row/cell").try_acquire());
  if (locks.traits().slots) {
    EXPECT_FALSE(Semaphore(locks, "table/pool", 3).try_acquire());
  }
  EXPECT_TRUE(Mutex(locks, "tables/row").try_acquire());
  table.release();
  EXPECT_TRUE(Mutex(locks, "table/row").try_acquire());
}

TEST_P(Hierarchy, ARowExcludesItsTableButNotItsSiblings) {
  COVERS(Rule<1>);
  const auto locks = client();
  auto row = Mutex(locks, "table/row1").acquire();
  EXPECT_FALSE(Mutex(locks, "table").try_acquire());
  EXPECT_TRUE(Mutex(locks, "table/row2").try_acquire());
  EXPECT_EQ(row.resources(), std::vector<std::string>{"table/row1"}) << "without ancestors";
  row.release();
  EXPECT_TRUE(Mutex(locks, "table").try_acquire());
  EXPECT_TRUE(nothing_left());
}

TEST_P(Hierarchy, AWaitingTableIsNotStarvedByRows) {
  COVERS(Rule<3>);
  const auto locks = client();
  auto row = Mutex(locks, "table/row1").acquire();
  auto table = queue_up(Mutex(locks, "table"));
  EXPECT_FALSE(Mutex(locks, "table/row2").try_acquire());
  row.release();
  auto lease = table.lease();
  auto next = queue_up(Mutex(locks, "table/row2"));
  lease.release();
  EXPECT_TRUE(next.lease());
}

TEST_P(Hierarchy, EveryLevelCounts) {
  COVERS(Rule<1>);
  const auto locks = client();
  const auto cell = Mutex(locks, "db/table/row/cell").acquire();
  for (const auto* above : {"db", "db/table", "db/table/row"}) {
    EXPECT_FALSE(Mutex(locks, above).try_acquire()) << above;
    EXPECT_EQ(look(above).holders.size(), 1U) << above;
    EXPECT_TRUE(look(above).holders.at(0).ancestor) << above;
  }
  EXPECT_FALSE(look("db/table/row/cell").holders.at(0).ancestor);
  EXPECT_TRUE(Mutex(locks, "db/table/other").try_acquire());
}

TEST_P(Hierarchy, CanBeSwitchedOff) {
  COVERS(Rule<1>);
  const auto locks = client();
  const Options flat{.hierarchy = false};
  const auto table = Mutex(locks, "table", flat).acquire();
  EXPECT_TRUE(Mutex(locks, "table/row", flat).try_acquire());
}

TEST_P(Hierarchy, ATableAndItsOwnRowAreOneClaim) {
  COVERS(Rule<2>);
  const auto locks = client();
  auto lease = MultiLock(locks, {"table", "table/row"}).acquire();
  EXPECT_EQ(lease.resources(), (std::vector<std::string>{"table", "table/row"}));
  EXPECT_EQ(look("table").holders.at(0).mode, Mode::exclusive);
  lease.release({"table/row"});
  EXPECT_FALSE(Mutex(locks, "table/row").try_acquire()) << "the table is held still";
  lease.release();
  EXPECT_TRUE(nothing_left());
}

TEST_P(Hierarchy, GivingARowBackGivesItsAncestorsBack) {
  COVERS(Rule<2>, Rule<8>);
  const auto locks = client();
  auto lease = MultiLock(locks, {"t1/a", "t1/b", "t2/a"}).acquire();
  lease.release({"t1/a"});
  EXPECT_FALSE(Mutex(locks, "t1").try_acquire()) << "t1/b is held still";
  lease.release({"t1/b"});
  EXPECT_TRUE(Mutex(locks, "t1").try_acquire());
  EXPECT_FALSE(Mutex(locks, "t2").try_acquire());
  EXPECT_TRUE(lease);
}

}  // namespace
}  // namespace interlock::conformance
