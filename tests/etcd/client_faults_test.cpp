// Clients that are killed and stopped.
#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class ClientFaults : public EtcdTest<servers::EtcdServer> {};

// Expected: whoever waits has watched, and gets it when the TTL has passed.
TEST_F(ClientFaults, AKilledHolderIsFollowedByTheWaiterAfterItsTtl) {
  auto child = holder("r", "2s");
  const auto fence = child.fence();
  auto waiting = queue_up(Mutex(connect(url()), "r"));
  child.kill();
  EXPECT_GT(waiting.lease().fence().value, fence);
}

// Expected: somebody who never saw it alive gets it when etcd's lease has ended.
TEST_F(ClientFaults, AKilledHolderIsClearedAwayForStrangers) {
  auto child = holder("r", "2s");
  child.fence();
  child.kill();
  EXPECT_TRUE(
      eventually([&] { return static_cast<bool>(Mutex(connect(url()), "r").try_acquire()); }));
}

/// Lets a process run for a hundredth of the time, until the end of this object.
class SlowMotion {
 public:
  explicit SlowMotion(const Child& child)
      : thread_([&child](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            child.signal(SIGSTOP);
            std::this_thread::sleep_for(99ms);
            child.signal(SIGCONT);
            std::this_thread::sleep_for(1ms);
          }
        }) {}

 private:
  std::jthread thread_;
};

// Many readers of one client are woken together, and the client hardly gets to run. Expected: each of them is let in,
// and none has to ask again because its answer was lost.
TEST_F(ClientFaults, AClientThatIsSlowLosesNoAnswer) {
  const RwLock lock(connect(url()), "r", patient());
  auto writer = lock.write();
  Child readers("readers", {url(), "r", "60"});
  ASSERT_TRUE(eventually([&] { return waiters("r") == 60; }));
  const SlowMotion slow(readers);
  writer.release();
  EXPECT_EQ(readers.after("in "), "60");
  EXPECT_LE(std::stoi(readers.after("tries ")), 2);
}

// Expected: a dead waiter holds nobody up for long.
TEST_F(ClientFaults, AKilledWaiterIsForgotten) {
  const RwLock lock(connect(url()), "r");
  const auto reader = lock.read();
  auto child = holder("r");
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1; }));
  EXPECT_FALSE(lock.try_read());
  child.kill();
  EXPECT_TRUE(lock.try_read_for(kPatience));
}

// Expected: another one takes over when its TTL has ended, and it is told when it wakes.
TEST_F(ClientFaults, AStoppedHolderIsFollowedAndToldWhenItWakes) {
  auto child = holder("r", "1s");
  const auto fence = child.fence();
  child.signal(SIGSTOP);
  auto next = Mutex(connect(url()), "r").acquire();
  EXPECT_GT(next.fence().value, fence);
  child.signal(SIGCONT);
  EXPECT_EQ(child.ask("state", "state "), "lost");
  EXPECT_EQ(child.ask("release", "release "), "lost");
  EXPECT_EQ(next.release(), LeaseState::released);
}

// Expected: it outlives the process, and ends with its TTL.
TEST_F(ClientFaults, ADetachedLeaseOutlivesItsProcess) {
  auto child = holder("r", "20s");
  child.fence();
  const auto token = child.ask("detach", "token ");
  child.tell("exit");
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire());
  auto adopted = connect(url()).adopt(token);
  EXPECT_EQ(adopted.release(), LeaseState::released);
}

TEST_F(ClientFaults, AnOrderlyExitReleases) {
  auto child = holder("r");
  child.fence();
  child.tell("exit");
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
}

// A thousand leases. Expected: a handful of etcd's, and all of them live on.
TEST_F(ClientFaults, AThousandLeasesAreAFewLeasesOfEtcds) {
  const auto locks = connect(url());
  std::vector<Lease> leases;
  for (int i = 0; i < 1000; ++i)
    leases.push_back(Mutex(locks, "n" + std::to_string(i), {.ttl = 30s}).acquire());
  const auto text = servers().ctl({"lease", "list"});
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 4) << text;
  std::vector<TimePoint> first;
  for (const auto& lease : leases) first.push_back(lease.valid_until());
  EXPECT_TRUE(eventually([&] {
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if (leases[i].valid_until() <= first[i]) return false;
    }
    return true;
  }));
  for (const auto& lease : leases) EXPECT_TRUE(lease);
}

}  // namespace
}  // namespace interlock::etcd_tests
