#include "backends/etcd/lane.hpp"

#include <atomic>

#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

/// What happens to some that ask for one resource: "1 goes", "2 waits behind 1", "2 is woken".
class Lanes : public testing::Test {
 protected:
  void enter(std::uint64_t who, TimePoint until = TimePoint::max()) {
    const auto name = std::to_string(who);
    lane_.enter("r", {.high = 0, .low = who},
                {.go = [this, name] { said_.push_back(name + " goes"); },
                 .wait =
                     [this, name](std::uint32_t behind) {
                       said_.push_back(name + " waits behind " + std::to_string(behind));
                     },
                 .until = until});
  }
  using Left = etcd::Lane::Left;
  void leave(std::uint64_t who, Left how = Left::answered) {
    lane_.leave({.high = 0, .low = who}, how);
  }
  void drop(std::uint64_t who) { lane_.drop({.high = 0, .low = who}); }
  using Said = std::vector<std::string>;
  [[nodiscard]] Said said() { return std::exchange(said_, {}); }

 private:
  Said said_;
  etcd::Lane lane_{
      [this](const Owner& owner) { said_.push_back(std::to_string(owner.low) + " is woken"); }};
};

TEST_F(Lanes, OneGoesAndOthersAreToldToWaitAsSoonAsItIsAnswered) {
  for (const std::uint64_t who : {1U, 2U, 3U, 4U}) enter(who);
  EXPECT_EQ(said(), (Said{"1 goes"}));
  leave(1);
  EXPECT_EQ(said(), (Said{"2 goes", "3 waits behind 1", "4 waits behind 2"}));
}

TEST_F(Lanes, WhoeverWasToldToWaitIsWokenAndThenGoes) {
  for (const std::uint64_t who : {1U, 2U, 3U, 4U}) enter(who);
  leave(1);
  leave(2);
  EXPECT_EQ(said().back(), "3 is woken");
  enter(4);
  enter(3);
  EXPECT_EQ(said(), (Said{"3 goes"}));
  leave(3);
  EXPECT_EQ(said(), (Said{"4 goes"}));  // it has asked again meanwhile
  leave(4);
  enter(5);
  EXPECT_EQ(said(), (Said{"5 goes"}));
}

TEST_F(Lanes, WhoeverIsNotWantedAnyMoreIsPassedOver) {
  for (const std::uint64_t who : {1U, 2U, 3U}) enter(who);
  drop(2);
  leave(1);
  EXPECT_EQ(said(), (Said{"1 goes", "3 goes"}));
}

TEST_F(Lanes, WhoeverHasNoTimeLeftIsPassedOver) {
  enter(1);
  enter(2, BootClock::now());
  enter(3);
  leave(1);
  EXPECT_EQ(said(), (Said{"1 goes", "3 goes"}));
  enter(2);  // it comes back
  leave(3);
  EXPECT_EQ(said(), (Said{"2 goes"}));
}

TEST_F(Lanes, WhoeverIsNextAndNotWantedAnyMoreStopsNobody) {
  for (const std::uint64_t who : {1U, 2U, 3U, 4U}) enter(who);
  leave(1);
  leave(2);
  EXPECT_EQ(said().back(), "3 is woken");
  drop(3);
  EXPECT_EQ(said(), (Said{"4 is woken"}));
}

TEST_F(Lanes, WhoeverIsOnItsWayAndNotWantedAnyMoreIsWaitedFor) {
  for (const std::uint64_t who : {1U, 2U, 3U}) enter(who);
  drop(1);
  EXPECT_EQ(said(), (Said{"1 goes"}));
  leave(1, Left::unanswered);
  EXPECT_EQ(said(), (Said{"2 goes", "3 goes"}));
}

TEST_F(Lanes, WhoeverComesBackIsTheLast) {
  for (const std::uint64_t who : {1U, 2U, 3U}) enter(who);
  drop(2);
  enter(2);
  leave(1);
  leave(3);
  EXPECT_EQ(said(), (Said{"1 goes", "3 goes", "2 waits behind 1", "2 is woken"}));
}

TEST_F(Lanes, WithoutAnAnswerAllGo) {
  for (const std::uint64_t who : {1U, 2U, 3U}) enter(who);
  leave(1);
  (void)said();
  enter(4);
  leave(2, Left::unanswered);
  EXPECT_EQ(said(), (Said{"3 is woken", "4 goes"}));
  enter(3);
  enter(5);
  EXPECT_EQ(said(), (Said{"3 goes", "5 goes"}));
  leave(3, Left::unanswered);
  leave(4, Left::unanswered);
  enter(6);
  EXPECT_EQ(said(), Said{});
  leave(5);
  EXPECT_EQ(said(), (Said{"6 goes"}));
}

TEST_F(Lanes, WhoeverHadNoTimeSaysNothingOfEtcd) {
  for (const std::uint64_t who : {1U, 2U, 3U}) enter(who);
  leave(1, Left::early);
  EXPECT_EQ(said(), (Said{"1 goes", "2 goes"}));
  leave(2);
  EXPECT_EQ(said(), (Said{"3 goes"}));
}

class LongLane : public EtcdTest<servers::EtcdServer> {};

// More acquisitions on one client than etcd can put in line within the time that a call may take.
// Expected: none of them is told that etcd can't be reached.
TEST_F(LongLane, OutlastsTheTimeLimitOfACall) {
  constexpr std::size_t kMany = 100;  // 25 ms each
  const auto lease = Mutex(connect(url()), "r", patient()).acquire();
  servers::Proxy proxy(servers().port());
  const auto locks = connect("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "?timeout=2s");
  Mutex(locks, "other", patient()).acquire().release();
  proxy.slow(servers::Proxy::to_server, 25ms);
  const Mutex mutex(locks, "r", {.retry = Retry::none()});
  std::stop_source stop;
  std::atomic<std::size_t> cancelled = 0;
  std::atomic<std::size_t> others = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    mutex.acquire(Wait::forever(stop.get_token()), [&](const Attempt& attempt) {
      ++(attempt.outcome() == Outcome::cancelled ? cancelled : others);
    });
  }
  EXPECT_TRUE(eventually([&] { return others != 0 || waiters("r") == kMany; }));
  EXPECT_EQ(others, 0);
  proxy.flow();
  stop.request_stop();
  EXPECT_TRUE(eventually([&] { return cancelled == kMany; }));
}

// A server that hangs. Expected: all are told within the time limit of a call, not one after the other.
TEST_F(LongLane, IsNoLongWayToAnError) {
  const auto locks = connect(url() + "?timeout=500ms");
  Mutex(locks, "r", patient()).acquire().release();
  const Mutex mutex(locks, "r", {.retry = Retry::none()});
  servers().process().signal(SIGSTOP);
  constexpr std::size_t kMany = 500;  // one after the other, that is 250 s
  std::atomic<std::size_t> unreachable = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    mutex.acquire(Wait::forever(), [&](const Attempt& attempt) {
      if (!attempt && attempt.error().errc() == Errc::unreachable) ++unreachable;
    });
  }
  EXPECT_TRUE(eventually([&] { return unreachable == kMany; }));
  servers().process().signal(SIGCONT);
}

}  // namespace
}  // namespace interlock::etcd_tests
