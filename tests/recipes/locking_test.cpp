// Locking: lists of resources, locked and released by name. Rows 4.1 to 4.4; which store it chooses is
// in tests/unit/locking_test.cpp.
#include "interlock/locking.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "conformance/temporary_directory.hpp"
#include "conformance/wire.hpp"
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
  Locking mine("worker-1", client(), {.hierarchy = true});
  Locking yours("worker-2", client(), {.hierarchy = true});
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

// Row 4.4: a name is a name, however much it looks like a path, and however deep that is.
TEST_P(LockingFacade, NamesThatLookLikePathsAreIndependent) {
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  std::string deep = "data";
  for (int i = 0; i < 100; ++i) deep += "/d";
  ASSERT_TRUE(mine.acquire({"data", "data/a"}));
  EXPECT_TRUE(yours.acquire({"data/b", deep}, 30s, "", 0s));
  EXPECT_FALSE(yours.acquire({"data/a"}, 30s, "", 0s));
  EXPECT_EQ(holders("data"), 1U);
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
  const auto wire = std::make_shared<conformance::Wire>();
  Locking mine("worker-1", Client(std::make_unique<conformance::Wired>(store().open(), wire)));
  const auto code = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      return error.errc();
    }
    return Errc::busy;  // accepted
  };
  EXPECT_EQ(code([&] { Locking("", client()); }), Errc::invalid_owner);
  for (const auto never : {0s, -1s}) {
    EXPECT_EQ(code([&] { (void)mine.acquire({"r"}, never); }), Errc::invalid_ttl);
    EXPECT_EQ(code([&] { (void)mine.try_acquire("r", 1s, never); }), Errc::invalid_ttl);
    EXPECT_EQ(code([&] { (void)mine.try_acquire("r", never, 30s); }), Errc::invalid);
    EXPECT_EQ(code([&] { (void)mine.read_with_lock("r", never); }), Errc::invalid_ttl);
  }
  EXPECT_EQ(code([&] { (void)mine.acquire({"r"}, 30s, "", -1s); }), Errc::invalid);
  for (const auto* blank : {"", " ", "   "}) {
    EXPECT_EQ(code([&] { (void)mine.acquire({"r", blank}); }), Errc::invalid);
    EXPECT_EQ(code([&] { (void)mine.try_acquire(blank, 1s, 30s); }), Errc::invalid);
    EXPECT_EQ(code([&] { (void)mine.who({blank}); }), Errc::invalid);
    EXPECT_EQ(code([&] { (void)mine.read_with_lock(blank); }), Errc::invalid);
  }
  EXPECT_EQ(wire->calls(), 0);
}

// Row 3.1: one lock as a handle, or nothing; the handle knows its name and its times.
TEST_P(LockingFacade, GivesOneLockAsAHandleOrNothing) {
  Locking mine("worker-1", client());
  Locking yours("worker-2", client());
  const auto before = std::chrono::system_clock::now();
  auto handle = mine.try_acquire("tile:7", 1s, 20s);
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->resource(), "tile:7");
  EXPECT_GE(handle->acquired_at(), before);
  EXPECT_LE(handle->acquired_at(), std::chrono::system_clock::now());
  EXPECT_GT(handle->time_remaining(), 0s);
  EXPECT_LE(handle->valid_until(), BootClock::now() + 20s);
  EXPECT_FALSE(mine.holds({"tile:7"})) << "the handle is its user's";
  EXPECT_FALSE(yours.try_acquire("tile:7", 100ms, 20s));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(yours.try_acquire("tile:7", kPatience, 20s, stop.get_token()));
  EXPECT_EQ(handle->release(), LeaseState::released);
  EXPECT_NO_THROW(handle->release()) << "twice is fine";
  EXPECT_TRUE(yours.try_acquire("tile:7", kPatience, 20s));
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

TEST_P(FileUnderLock, IsNothingIfTheLockCanNotBeHad) {  // row 4.4
  Locking writer("writer", client());
  Locking reader("reader", client());
  const auto path = write("half");
  ASSERT_TRUE(writer.acquire({path}, 600s));
  EXPECT_EQ(reader.read_with_lock(path, 5s, 100ms), std::nullopt);
  EXPECT_EQ(reader.read_with_lock(path, 5s, 0s), std::nullopt) << "one look";
  EXPECT_TRUE(writer.release({path}));
  EXPECT_EQ(reader.read_with_lock(path, 5s, kPatience), "half");
  EXPECT_TRUE(
      eventually([&] { return nothing_left(); }));  // a wait that gave up is cleaned up after
}

// Row 4.4: more levels than a hierarchy may have.
TEST_P(FileUnderLock, MayBeDeepInADirectory) {
  auto directory = directory_.path();
  for (int i = 0; i < 40; ++i) directory /= "d";
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "data.bin") << "deep";
  Locking reader("reader", client());
  EXPECT_EQ(reader.read_with_lock(directory / "data.bin"), "deep");
  Locking by_level("reader", client(), {.hierarchy = true});
  try {
    (void)by_level.read_with_lock(directory / "data.bin");
    FAIL() << "that is too deep for a hierarchy";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("turn the option `hierarchy` off"), std::string::npos)
        << error.what();
  }
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
