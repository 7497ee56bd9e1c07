// Three members: the leader killed and stopped, one and two of them down.
#include <atomic>

#include "conformance/overlap_register.hpp"
#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class Cluster : public EtcdTest<servers::EtcdCluster> {
 protected:
  [[nodiscard]] auto& members() { return servers().members(); }

  /// Threads of several clients that take and give back two locks while `happens` does. Nobody may
  /// overlap; and afterwards all of them have to get on.
  void nobody_overlaps(const std::function<void()>& happens) {
    conformance::OverlapRegister witness;
    std::atomic<bool> stop = false;
    std::atomic<int> unreachable = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i, locks = connect(url())] {
        const auto part = exclusive(i % 2 == 0 ? "a" : "b");
        while (!stop) {
          try {
            auto attempt = locks.acquire({part}, patient(4s), Wait::for_(5s));
            if (!attempt) continue;
            auto& lease = *attempt;
            witness.enter(lease, {part});
            std::this_thread::sleep_for(2ms);
            witness.leave(lease);
            lease.release();
          } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
            ++unreachable;
          }
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return witness.entries() > 20; }));
    happens();
    const auto then = witness.entries();
    EXPECT_TRUE(eventually([&] { return witness.entries() > then + 20; })) << "nobody gets on";
    stop = true;
    threads.clear();
    for (const auto& overlap : witness.overlaps()) ADD_FAILURE() << overlap;
  }
};

// Expected: the holder holds on, the waiter waits on and is served, after an election.
TEST_F(Cluster, TheLeaderIsKilledAndTheLeaseLivesOn) {
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", patient()));
  servers().leader()->stop(SIGKILL);
  EXPECT_TRUE(still_held(lease));
  EXPECT_FALSE(waiting.over());
  const auto fence = lease.fence();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_GT(waiting.lease().fence(), fence);
}

// A disk that hangs looks the same. Expected: clients of the stopped member go to another one.
TEST_F(Cluster, TheLeaderIsStoppedAndTheLeaseLivesOn) {
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", patient()));
  auto* leader = servers().leader();
  leader->process().signal(SIGSTOP);
  EXPECT_TRUE(still_held(lease));
  const auto fence = lease.fence();
  bool released = false;
  try {
    released = lease.release() == LeaseState::released;
  } catch (const Error& error) {  // in doubt, and goes on in the background
    EXPECT_EQ(error.errc(), Errc::unreachable);
    released = true;
  }
  EXPECT_TRUE(released);
  EXPECT_GT(waiting.lease().fence(), fence);
  leader->process().signal(SIGCONT);
}

// Expected: nothing happens, whichever it is.
TEST_F(Cluster, OneOfThreeIsDownAndNothingHappens) {
  for (const auto& member : members()) {
    member->stop(SIGKILL);
    const auto locks = connect(url());
    auto lease = Mutex(locks, "r", patient()).acquire();
    auto waiting = queue_up(Mutex(connect(url()), "r", patient()));
    EXPECT_TRUE(still_held(lease));
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(waiting.lease());
    member->launch();
    member->wait();
    ASSERT_NE(servers().leader(), nullptr);
  }
}

// Expected: unreachable, told as such within the deadline; the holder is told in time that it lost;
// when they are back, all goes on and fences rise.
TEST_F(Cluster, TwoOfThreeAreDownAndItIsUnreachableAndThenLost) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r", {.ttl = 4s}).acquire();
  const auto fence = lease.fence();
  members()[0]->stop(SIGKILL);
  members()[1]->stop(SIGKILL);
  const auto start = BootClock::now();
  try {
    const auto attempt = Mutex(locks, "other", {.retry = Retry::none()}).try_acquire_for(2s);
    ADD_FAILURE() << "nobody can have decided: " << to_string(attempt.outcome());
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    EXPECT_EQ(error.resource(), "other");
  }
  EXPECT_LT(BootClock::now() - start, 30s);
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  members()[0]->launch();
  members()[1]->launch();
  const auto next = Mutex(locks, "r", patient(30s)).acquire();
  EXPECT_GT(next.fence(), fence);
  EXPECT_EQ(lease.state(), LeaseState::lost);
}

// Row 1.5.
TEST_F(Cluster, NobodyOverlapsWhileLeadersAreKilled) {
  nobody_overlaps([&] {
    for (int i = 0; i < 2; ++i) {
      auto* leader = servers().leader();
      leader->stop(SIGKILL);
      std::this_thread::sleep_for(2s);
      leader->launch();
      leader->wait();
    }
  });
}

TEST_F(Cluster, NobodyOverlapsWhileLeadersAreStopped) {
  nobody_overlaps([&] {
    for (int i = 0; i < 2; ++i) {
      auto* leader = servers().leader();
      leader->process().signal(SIGSTOP);
      std::this_thread::sleep_for(3s);
      leader->process().signal(SIGCONT);
    }
  });
}

TEST_F(Cluster, NobodyOverlapsWhileTheMajorityIsAway) {
  nobody_overlaps([&] {
    for (const std::size_t i : {0U, 1U}) members()[i]->process().signal(SIGSTOP);
    std::this_thread::sleep_for(6s);  // leases end meanwhile
    for (const std::size_t i : {0U, 1U}) members()[i]->process().signal(SIGCONT);
  });
}

}  // namespace
}  // namespace interlock::etcd_tests
