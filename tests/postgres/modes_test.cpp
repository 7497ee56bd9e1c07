// Both modes over one schema. Expected: neither grants what is held in the other, and says so.
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Modes : public PostgresTest {
 protected:
  /// What a refusal says; nothing if it was granted or busy.
  static std::string refusal(const std::function<bool()>& attempt) {
    try {
      return attempt() ? "granted" : "busy";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      return error.what();
    }
  }
};

TEST_F(Modes, ANameThatIsHeldInOneIsRefusedInTheOther) {
  const auto advisory = connect(url());
  const auto leases = connect(lease_url());
  for (const auto* const clients : {&advisory, &leases}) {
    const auto& holder = *clients;
    const auto& other = clients == &advisory ? leases : advisory;
    auto held = Mutex(holder, "r", kPatient).acquire();
    const Mutex mutex(other, "r", kPatient);
    for (const auto& said :
         {refusal([&] { return bool(mutex.try_acquire()); }),
          refusal([&] { return bool(mutex.try_acquire_for(60s)); }),
          refusal([&] { return bool(RwLock(other, "r", kPatient).try_read()); })}) {
      EXPECT_NE(said.find("'r'"), std::string::npos) << said;
      EXPECT_NE(said.find("process " + std::to_string(::getpid())), std::string::npos) << said;
      EXPECT_NE(said.find("mode=lease"), std::string::npos) << said;
    }
    EXPECT_TRUE(Mutex(other, "another", kPatient).try_acquire());
    EXPECT_TRUE(held.extend(600s));
    held.release();
    EXPECT_TRUE(mutex.try_acquire());
  }
}

// Several names at once, with a semaphore's, a reader's and an ancestor's.
TEST_F(Modes, EveryKindOfHoldIsSeen) {
  const auto advisory = connect(url());
  const auto leases = connect(lease_url());
  const auto reader = RwLock(advisory, "read", kPatient).read();
  const auto slot = Semaphore(advisory, "slots", 3, kPatient).acquire();
  const auto child = Mutex(advisory, "parent/child", kPatient).acquire();
  const auto refused = [&](auto attempt) {
    const auto said = refusal([&] { return bool(attempt()); });
    EXPECT_NE(said.find("other mode"), std::string::npos) << said;
  };
  refused([&] { return RwLock(leases, "read", kPatient).try_write(); });
  refused([&] { return Semaphore(leases, "slots", 3, kPatient).try_acquire(); });
  refused([&] { return Mutex(leases, "parent", kPatient).try_acquire(); });
  refused([&] { return MultiLock(leases, {"free", "parent/child"}, kPatient).try_acquire(); });
  // What does not exclude each other may be in both.
  EXPECT_TRUE(RwLock(leases, "read", kPatient).try_read());
  EXPECT_TRUE(Mutex(leases, "parent/other", kPatient).try_acquire());
  EXPECT_TRUE(Mutex(leases, "free", kPatient).try_acquire());
}

// A holder that was killed, or whose lease has ended, is in nobody's way.
TEST_F(Modes, WhatHasEndedIsInNobodysWay) {
  {
    Child holder("holder", {url(), "r", "600s", "exclusive"});
    ASSERT_TRUE(eventually([&] { return holders("r", url()) == 1; }));
    holder.kill();
  }
  const Mutex mutex(connect(lease_url()), "r", kPatient);
  EXPECT_TRUE(
      eventually([&] { return refusal([&] { return bool(mutex.try_acquire()); }) == "granted"; }));
  {
    Child holder("holder", {lease_url(), "r", "2s", "exclusive"});
    ASSERT_TRUE(eventually([&] { return holders("r", lease_url()) == 1; }));
    holder.kill();
  }
  const Mutex other(connect(url()), "r", kPatient);
  EXPECT_TRUE(
      eventually([&] { return refusal([&] { return bool(other.try_acquire()); }) == "granted"; }));
}

// Many take it at once, half of them in each mode. Expected: never two at once.
TEST_F(Modes, TheyExcludeEachOtherInACrowd) {
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  std::atomic<int> grants = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, where = i % 2 == 0 ? url() : lease_url()](const std::stop_token&) {
        const Mutex mutex(connect(where), "hot", kPatient);
        for (int turn = 0; turn < 200; ++turn) {
          try {
            auto lease = mutex.try_acquire();
            if (!lease) continue;
            if (inside.fetch_add(1) != 0) ++overlaps;
            ++grants;
            std::this_thread::yield();
            --inside;
          } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::refused) << error.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_GT(grants, 0);
}

}  // namespace
}  // namespace interlock::postgres_tests
