// Locking: lists of resources, locked and released by name. Rows 4.1 to 4.4; which store it chooses is
// in tests/unit/locking_test.cpp.
#include "interlock/locking.hpp"

#include <atomic>
#include <fstream>

#include "conformance/temporary_directory.hpp"
#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(LockingFacade);

using Labels = std::map<std::string, std::string>;

TEST_P(LockingFacade, TakesAllAtOnceAndShowsWhoHasThem) {  // rows 4.2 and 4.3
  COVERS(conformance::Case<23>, conformance::Case<29>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"r1", "r2", "r3"}, 30s, "ingest-job-42"));
  EXPECT_TRUE(mine.holds({"r1", "r2", "r3"}));
  EXPECT_FALSE(yours.holds({"r1"}));
  const Labels expected{{"r1", "ingest-job-42"}, {"r2", "ingest-job-42"}, {"r3", "ingest-job-42"}};
  EXPECT_EQ(yours.who({"r1", "r2", "r3", "free"}), expected) << "what is free is left out";
  EXPECT_EQ(look("r2").holders.at(0).who.identity, "worker-1");
  ASSERT_TRUE(yours.acquire({"unlabelled"}));
  EXPECT_EQ(mine.who({"unlabelled"}), (Labels{{"unlabelled", ""}}));
  EXPECT_EQ(mine.who({}), Labels{});
}

TEST_P(LockingFacade, IsAllOrNothing) {  // row 4.2
  static_assert(Locking::kMaxWait == 30s);
  COVERS(conformance::Case<1>, conformance::Case<3>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(yours.acquire({"r2"}));
  EXPECT_FALSE(mine.acquire({"r1", "r2", "r3"}, 30s, "late", 100ms));
  EXPECT_FALSE(mine.acquire({"r1", "r2"}, 30s, "one shot", 0s));
  EXPECT_FALSE(mine.holds({"r1"}));
  EXPECT_TRUE(eventually([&] { return holders("r1") + waiters("r1") + waiters("r2") == 0; }))
      << "a failed one leaves nothing behind";
  EXPECT_EQ(mine.who({"r1", "r2", "r3"}), (Labels{{"r2", ""}}));
}

TEST_P(LockingFacade, WaitsUntilAllAreFree) {  // row 4.2
  COVERS(conformance::Case<2>, conformance::Case<5>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(yours.acquire({"r1", "r2"}));
  auto waiting = std::async(std::launch::async, [&] {
    return mine.acquire({"r2", "r3"}, 30s, "", kPatience);
  });
  ASSERT_TRUE(eventually([&] { return waiters("r2") == 1; }));
  EXPECT_EQ(holders("r3"), 0U) << "never half-taken";
  EXPECT_TRUE(yours.release({"r1"}));
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  EXPECT_TRUE(yours.release({"r2"}));
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(mine.holds({"r2", "r3"}));
}

TEST_P(LockingFacade, ReleasesOnlyItsOwn) {  // row 4.2
  COVERS(conformance::Case<24>, conformance::Case<22>, conformance::Case<32>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"r1"}));
  ASSERT_TRUE(yours.acquire({"r2"}));
  EXPECT_FALSE(mine.release({"r1", "r2"}));
  EXPECT_EQ(holders("r1"), 0U);
  EXPECT_EQ(holders("r2"), 1U);
  EXPECT_TRUE(yours.holds({"r2"}));
  EXPECT_FALSE(mine.release({"r1"})) << "twice is no error";
  EXPECT_FALSE(mine.release({"never heard of"}));
  EXPECT_TRUE(mine.release({}));
  EXPECT_TRUE(mine.acquire({})) << "nothing is always to be had";
}

TEST_P(LockingFacade, ReleasesAPartAndKeepsTheRest) {  // row 4.2
  COVERS(conformance::Case<25>, conformance::Case<26>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"r1", "r2", "r3"}));
  EXPECT_TRUE(mine.release({"r2"}));
  EXPECT_TRUE(mine.holds({"r1", "r3"}));
  EXPECT_FALSE(mine.holds({"r1", "r2"}));
  EXPECT_TRUE(yours.acquire({"r2", "r4"}))
      << "sets without a common name don't wait for each other";
  EXPECT_FALSE(yours.acquire({"r3"}, 30s, "", 0s));
  EXPECT_TRUE(mine.release({"r3", "r1"}));
  EXPECT_TRUE(yours.release({"r2", "r4"}));
  EXPECT_TRUE(nothing_left());
}

TEST_P(LockingFacade, ANameGivenTwiceIsOneName) {  // row 4.2
  Locking mine("worker-1", client());
  ASSERT_TRUE(mine.acquire({"r1", "r2", "r1"}));
  EXPECT_EQ(mine.who({"r1", "r1"}).size(), 1U);
  EXPECT_TRUE(mine.release({"r1", "r1", "r2"}));
  EXPECT_TRUE(nothing_left());
}

TEST_P(LockingFacade, TheSameIdentityEntersAgainAndTheLastReleaseFrees) {  // row 4.2
  COVERS(conformance::Case<27>);
  Locking mine("worker-1", client());
  Locking also_mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"r1", "r2"}, 30s, "outer"));
  ASSERT_TRUE(mine.acquire({"r2", "r3"}, 30s, "inner"));
  ASSERT_TRUE(also_mine.acquire({"r1"}));
  EXPECT_TRUE(mine.release({"r2", "r3"}));
  EXPECT_TRUE(mine.holds({"r1", "r2"}));
  EXPECT_FALSE(yours.acquire({"r2"}, 30s, "", 0s));
  EXPECT_TRUE(yours.acquire({"r3"}, 30s, "", 0s));
  EXPECT_EQ(yours.who({"r2"}), (Labels{{"r2", "outer"}}));
  EXPECT_TRUE(mine.release({"r1", "r2"}));
  EXPECT_FALSE(yours.acquire({"r1"}, 30s, "", 0s)) << "the other one of this identity holds it";
  EXPECT_TRUE(also_mine.release({"r1"}));
  EXPECT_TRUE(yours.acquire({"r1", "r2"}, 30s, "", 0s));
}

TEST_P(LockingFacade, ATableExcludesItsRowsAlsoAfterAPartialRelease) {
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"table", "table/1", "other"}));
  EXPECT_EQ(yours.who({"table", "table/1"}).size(), 2U);
  EXPECT_TRUE(mine.release({"table"}));
  EXPECT_TRUE(mine.release({"table/1"}));
  EXPECT_TRUE(mine.holds({"other"}));
  EXPECT_TRUE(yours.acquire({"table"}, 30s, "", 0s));
  EXPECT_TRUE(mine.release({"other"}));
  ASSERT_TRUE(mine.acquire({"shelf/1"}));
  EXPECT_EQ(yours.who({"shelf"}), Labels{}) << "nobody acquired that";
}

TEST_P(LockingFacade, RenewsWhatItHoldsAndKeepsItsLabel) {  // row 4.3
  COVERS(conformance::Case<30>, conformance::Case<9>);
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  ASSERT_TRUE(mine.acquire({"r1", "r2"}, 3s, "long job"));
  const auto seen_at = BootClock::now();
  ASSERT_TRUE(mine.release({"r2"})) << "what is left is still renewed";
  while (BootClock::now() < seen_at + 4500ms) {
    ASSERT_FALSE(yours.acquire({"r1"}, 30s, "", 0s));
    EXPECT_EQ(yours.who({"r1"}), (Labels{{"r1", "long job"}}));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_TRUE(mine.holds({"r1"}));
}

TEST_P(LockingFacade, WhatHasExpiredIsNotShownAndBlocksNobody) {  // row 4.3
  COVERS(conformance::Case<28>, conformance::Case<8>);
  Locking mine("worker-1", client());
  const auto expiring =
      Mutex(client(), "r1", {.ttl = 300ms, .label = "crashed", .renew = false}).acquire();
  EXPECT_TRUE(eventually([&] { return mine.who({"r1"}).empty(); }));
  EXPECT_TRUE(mine.acquire({"r1"}, 30s, "next"));
  EXPECT_EQ(mine.who({"r1"}), (Labels{{"r1", "next"}}));
}

TEST_P(LockingFacade, ALossShows) {
  Locking mine("worker-1", client());
  ASSERT_TRUE(mine.acquire({"r1"}, 1s));
  ASSERT_TRUE(mine.acquire({"r2"}, 1s));
  store().break_hold("r1");
  EXPECT_TRUE(eventually([&] { return !mine.holds({"r1"}); }));
  EXPECT_TRUE(mine.holds({"r2"}));
  EXPECT_FALSE(mine.release({"r1", "r2"})) << "one of them was not ours until now";
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(LockingFacade, GivesBackWhatIsLeftWhenItEnds) {
  COVERS(conformance::Case<6>, conformance::Case<31>);
  {
    Locking mine("worker-1", client());
    ASSERT_TRUE(mine.acquire({"r1", "r2"}));
    ASSERT_TRUE(mine.acquire({"r3"}));
    ASSERT_TRUE(mine.release({"r2"}));
    EXPECT_EQ(holders("r1"), 1U);
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(LockingFacade, FiveWorkersGetItInTurnWithoutOverlap) {  // row 4.9
  COVERS(conformance::Case<33>);
  const auto locks = client();
  std::atomic<int> inside{0};
  std::atomic<int> turns{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 5; ++i) {
    workers.emplace_back([&, i] {
      Locking mine("worker-" + std::to_string(i), locks);
      // Each worker's list begins with another name: no order has to be agreed on.
      const std::vector<std::string> names{"r" + std::to_string(i % 3), "r0", "r1", "r2"};
      ASSERT_TRUE(mine.acquire(names, 30s, "", kPatience));
      EXPECT_EQ(++inside, 1);
      ++turns;
      --inside;
      EXPECT_TRUE(mine.release(names));
    });
  }
  workers.clear();
  EXPECT_EQ(turns, 5);
  EXPECT_TRUE(nothing_left());
}

TEST_P(LockingFacade, ServesManyThreadsOfOneIdentity) {
  Locking mine("worker-1", client());
  ASSERT_TRUE(mine.acquire({"a", "b", "c", "d"}));
  std::vector<std::jthread> threads;
  for (const std::string name : {"a", "b", "c", "d"}) {
    threads.emplace_back([&mine, name] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(mine.acquire({name, "common"}, 30s, "", kPatience));
        EXPECT_TRUE(mine.holds({name, "common"}));
        EXPECT_TRUE(mine.release({name, "common"}));
      }
      EXPECT_TRUE(mine.release({name})) << "four threads give back a part of one lease each";
    });
  }
  threads.clear();
  EXPECT_TRUE(nothing_left());
}

TEST_P(LockingFacade, RefusesWhatMakesNoSense) {  // row 3.9
  COVERS(conformance::Case<11>);
  EXPECT_THROW(Locking("", client()), Error);
  Locking mine("worker-1", client());
  EXPECT_THROW((void)mine.acquire({"r"}, 0s), Error);
  EXPECT_THROW((void)mine.acquire({"r"}, -1s), Error);
  EXPECT_THROW((void)mine.acquire({""}), Error);
  EXPECT_THROW((void)mine.who({""}), Error);
}

class FileUnderLock : public LockingFacade {
 protected:
  [[nodiscard]] std::string write(const std::string& bytes) {
    const auto path = (directory_.path() / "data.bin").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TemporaryDirectory directory_;
};
INSTANTIATE_TEST_SUITE_P(, FileUnderLock, testing::ValuesIn(stores()), store_name);

TEST_P(FileUnderLock, IsReadAndTheLockIsFreeAgain) {  // row 4.4
  Locking mine("worker-1", client());
  const std::string bytes("a\0b\r\n\xff", 6);
  EXPECT_EQ(mine.read_with_lock(write(bytes)), bytes);
  EXPECT_EQ(mine.read_with_lock(write("")), "") << "empty is not missing";
  const auto large = std::string(300'000, 'x');
  EXPECT_EQ(mine.read_with_lock(write(large), 2s), large);
  EXPECT_TRUE(nothing_left());
}

TEST_P(FileUnderLock, ThatIsMissingIsNothing) {  // row 4.4
  COVERS(conformance::Case<34>);
  Locking mine("worker-1", client());
  EXPECT_EQ(mine.read_with_lock(directory_.path() / "missing"), std::nullopt);
  EXPECT_EQ(mine.read_with_lock(directory_.path() / "no" / "such" / "directory"), std::nullopt);
  EXPECT_TRUE(nothing_left());
  try {
    (void)mine.read_with_lock(directory_.path());
    FAIL() << "a directory has no bytes";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find(directory_.path().string()), std::string::npos);
  }
  EXPECT_TRUE(nothing_left());
}

TEST_P(FileUnderLock, WaitsForWhoeverWritesIt) {  // row 4.4
  Locking writer("writer", client());
  Locking reader("reader", client());
  const auto path = write("half");
  ASSERT_TRUE(writer.acquire({path}));
  auto reading = std::async(std::launch::async, [&] { return reader.read_with_lock(path); });
  ASSERT_TRUE(eventually([&] { return waiters(path) == 1; }));
  EXPECT_EQ(writer.read_with_lock(path), "half") << "the writer itself may read";
  EXPECT_EQ(write("half and half"), path);
  EXPECT_TRUE(writer.release({path}));
  EXPECT_EQ(reading.get(), "half and half");
}

}  // namespace
}  // namespace interlock::recipes
