// One member: killed, stopped, compacted, its leases revoked, the way to it cut. Each test says what
// has to come of it.
#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class ServerFaults : public EtcdTest<servers::EtcdServer> {
 protected:
  [[nodiscard]] std::string url_of(const servers::Proxy& proxy) {
    return "etcd://127.0.0.1:" + std::to_string(proxy.port());
  }
  /// Revokes every lease that there is, behind everybody's back.
  void revoke_leases() {
    std::istringstream words(servers().ctl({"lease", "list"}));
    for (std::string word; words >> word;) {
      if (word.size() == 16) servers().ctl({"lease", "revoke", word});
    }
  }
};

// Expected: nothing happened. The holder holds on, and the waiter is served as ever.
TEST_F(ServerFaults, KilledAndRestartedTheLeaseLivesOnAndTheWaiterIsServed) {
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", patient()));
  servers().restart(SIGKILL);
  EXPECT_TRUE(still_held(lease));
  EXPECT_FALSE(waiting.over());
  const auto fence = lease.fence();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_GT(waiting.lease().fence(), fence);
}

// Expected: who asks is told that the store can't be reached, by name, and neither "busy" nor "timed
// out"; the holder is told by its own clock.
TEST_F(ServerFaults, AServerThatStaysDownIsUnreachableAndTheHolderIsToldInTime) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "held", {.ttl = 2s}).acquire();
  servers().stop(SIGKILL);
  for (const bool once : {true, false}) {
    const Mutex mutex(locks, "r", {.retry = {.attempts = 3, .first = 1ms}});
    try {
      const auto attempt = once ? mutex.try_acquire() : mutex.try_acquire_for(kPatience);
      ADD_FAILURE() << "there is no server: " << to_string(attempt.outcome());
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable);
      EXPECT_EQ(error.resource(), "r");
      EXPECT_EQ(error.node(), servers().url());
    }
  }
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
}

// A server that hangs. Expected: the same, and nobody hangs with it.
TEST_F(ServerFaults, AStoppedServerIsUnreachableWithinTheDeadline) {
  const auto locks = connect(url() + "?timeout=500ms");
  const auto lease = Mutex(locks, "held", {.ttl = 2s}).acquire();
  servers().process().signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] {  // it may take a moment until all of it stands still
    try {
      static_cast<void>(Mutex(locks, "r", {.retry = Retry::none()}).try_acquire_for(kPatience));
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      return true;
    }
  }));
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  servers().process().signal(SIGCONT);
  EXPECT_TRUE(Mutex(locks, "r", patient()).acquire());
}

// Expected: a caller that is cancelled while the server hangs comes back at once.
TEST_F(ServerFaults, ACallerCanBeCancelledWhileTheServerHangs) {
  const auto locks = connect(url() + "?timeout=60s");
  Mutex(locks, "r").acquire().release();
  servers().process().signal(SIGSTOP);
  Waiting waiting{Mutex(locks, "r")};
  std::this_thread::sleep_for(300ms);
  waiting.cancel();
  const auto start = BootClock::now();
  EXPECT_EQ(waiting.attempt().outcome(), Outcome::cancelled);
  EXPECT_LT(BootClock::now() - start, 5s);
  servers().process().signal(SIGCONT);
}

// Expected: the holder is told, soon after etcd says so and long before its TTL ends. Nobody was let
// in by mistake: the key was gone, and whoever comes next has a larger fence.
TEST_F(ServerFaults, ARevokedLeaseIsTold) {
  auto lease = Mutex(connect(url()), "r", {.ttl = 6s}).acquire();
  revoke_leases();
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_FALSE(lease.lost_reason().empty());
  const auto next = Mutex(connect(url()), "r").acquire();
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(next) << "not the old one's to release";
}

// The trap of etcd's own lock: a waiter whose lease ran out while it waited. Expected: it is in line
// again, at the end, and holds nothing until it is its turn.
TEST_F(ServerFaults, AWaiterWhoseLeaseRanOutHoldsNothing) {
  const auto other = connect(url());
  auto held = Mutex(other, "r", {.ttl = 600s, .renew = false}).acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r"));
  const auto first = look("r").waiters.at(0).owner;
  // Only the waiter's: the holder's is the longest one.
  std::istringstream words(servers().ctl({"lease", "list"}));
  for (std::string word; words >> word;) {
    if (word.size() == 16 &&
        servers().ctl({"lease", "timetolive", word}).find("granted with TTL(5s)") !=
            std::string::npos)
      servers().ctl({"lease", "revoke", word});
  }
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1; }));
  EXPECT_EQ(look("r").waiters.at(0).owner, first);
  EXPECT_FALSE(waiting.over());
  EXPECT_TRUE(held);
  EXPECT_EQ(held.release(), LeaseState::released);
  EXPECT_TRUE(waiting.lease());
}

// Expected: a waiter that watches from before the compaction is woken all the same.
TEST_F(ServerFaults, CompactionDisturbsNobody) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r", patient()).acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", patient()));
  for (int i = 0; i < 5; ++i) {
    Mutex(locks, "other").acquire().release();
    const auto latest = Mutex(locks, "other").acquire().fence().value;
    servers().ctl({"compaction", "--physical", std::to_string(latest)});
  }
  EXPECT_TRUE(still_held(lease));
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

// Expected: the watch is made anew, and a release that nobody could tell of is found.
TEST_F(ServerFaults, AConnectionThatIsCutCostsAMoment) {
  servers::Proxy proxy(servers().port());
  const auto locks = connect(url_of(proxy));
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  auto waiting = queue_up(Mutex(locks, "r", patient()));
  const auto mine = Mutex(locks, "mine", patient()).acquire();
  for (int i = 0; i < 3; ++i) {
    proxy.cut();
    std::this_thread::sleep_for(100ms);
  }
  lease.release();
  EXPECT_TRUE(waiting.lease());
  EXPECT_TRUE(mine);
}

// Expected: the watch hangs with its connection, and the heartbeat finds what it did not tell.
TEST_F(ServerFaults, AWatchThatNobodyAnswersIsNotTheOnlyWay) {
  servers::Proxy proxy(servers().port());
  const auto locks = connect(url_of(proxy) + "?timeout=1s");
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  auto waiting = queue_up(Mutex(locks, "r", patient()));
  proxy.stall(servers::Proxy::to_client);
  lease.release();
  std::this_thread::sleep_for(1500ms);
  proxy.flow();
  EXPECT_TRUE(waiting.lease());
}

// The answer to a release is lost, and somebody else has the lock by the time it is sent again.
// Expected: it finds nothing of its own, and leaves the other one alone.
TEST_F(ServerFaults, ARetriedReleaseLeavesTheSuccessorAlone) {
  servers::Proxy proxy(servers().port());
  const auto locks = connect(url_of(proxy) + "?timeout=500ms");
  auto lease = Mutex(locks, "r", patient()).acquire();
  proxy.swallow(servers::Proxy::to_client);
  EXPECT_THROW(lease.release(), Error);
  const auto next = Mutex(connect(url()), "r").acquire();
  proxy.flow();
  proxy.cut();
  Mutex(locks, "another", patient()).acquire().release();
  std::this_thread::sleep_for(2s);  // the release goes on in the background
  EXPECT_TRUE(next);
  EXPECT_EQ(look("r").holders.at(0).owner, next.owner());
}

// The answer to an acquire is lost. Expected: asking again settles it, under the same owner.
TEST_F(ServerFaults, ALostAnswerIsSettledByAskingAgain) {
  servers::Proxy proxy(servers().port());
  const auto locks = connect(url_of(proxy) + "?timeout=500ms");
  Mutex(locks, "warm", patient()).acquire().release();
  proxy.swallow(servers::Proxy::to_client);
  Waiting waiting{Mutex(locks, "r", patient())};
  EXPECT_TRUE(eventually([&] { return holders("r") == 1; }));
  const auto owner = look("r").holders.at(0).owner;
  proxy.flow();
  proxy.cut();
  EXPECT_EQ(waiting.lease().owner(), owner);
}

// A request that hangs on the way to one member, so that it is sent to another one; and then it
// arrives after all. Both ways end at the same server.
class LateCopies : public ServerFaults {
 protected:
  LateCopies() {
    // The client waits for something, and so has what a waiter needs.
    waiting_.emplace(queue_up(Mutex(locks_, "busy", patient())));
    slow_.keep(servers::Proxy::to_server, "r\thx");
  }
  void arrives() {
    const auto before = slow_.passed(servers::Proxy::to_client);
    slow_.deliver();
    EXPECT_TRUE(eventually([&] { return slow_.passed(servers::Proxy::to_client) > before; }));
  }
  /// The lock is free, and stays so.
  void expect_free() {
    auto next = Mutex(connect(url()), "r", patient()).try_acquire_for(kPatience / 4);
    ASSERT_TRUE(next);
    EXPECT_EQ(holders("r"), 1);
    EXPECT_EQ(waiters("r"), 0);
    next->release();
    EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
  }

  servers::Proxy slow_{servers().port()};
  servers::Proxy good_{servers().port()};
  const Client locks_ =
      connect(url_of(slow_) + ",127.0.0.1:" + std::to_string(good_.port()) + "?timeout=4s");
  Lease busy_ = Mutex(connect(url()), "busy", patient()).acquire();
  std::optional<Waiting> waiting_;
};

// Expected: it does not get in line for what it has.
TEST_F(LateCopies, OneThatArrivesWhileItIsHeldDoesNothing) {
  auto lease = Mutex(locks_, "r", patient()).acquire();
  ASSERT_EQ(slow_.faults(), 1);
  arrives();
  EXPECT_TRUE(still_held(lease));
  EXPECT_EQ(lease.release(), LeaseState::released);
  expect_free();
}

// Expected: it does not take the lock for somebody who has given it back.
TEST_F(LateCopies, OneThatArrivesAfterTheReleaseDoesNothing) {
  Mutex(locks_, "r", patient()).acquire().release();
  ASSERT_EQ(slow_.faults(), 1);
  arrives();
  expect_free();
}

// Expected: nor for somebody who was told "no".
TEST_F(LateCopies, OneThatArrivesAfterItWasBusyDoesNothing) {
  auto lease = Mutex(connect(url()), "r", patient()).acquire();
  EXPECT_FALSE(Mutex(locks_, "r").try_acquire());
  ASSERT_EQ(slow_.faults(), 1);
  lease.release();
  arrives();
  expect_free();
}

// Expected: nor for somebody who has given up.
TEST_F(LateCopies, OneThatArrivesAfterItWasGivenUpDoesNothing) {
  good_.stall(servers::Proxy::to_server);
  EXPECT_THROW(static_cast<void>(Mutex(locks_, "r").try_acquire()), Error);
  ASSERT_EQ(slow_.faults(), 1);
  good_.flow();
  EXPECT_TRUE(eventually([&] {  // its client takes it back
    return !servers().ctl({"get", "--prefix", "interlock/\tr"}).empty();
  }));
  arrives();
  expect_free();
}

// All data is lost, and revisions begin anew. Expected: somebody who knew the lock before does not take
// its new holder for a dead one.
TEST_F(ServerFaults, AfterALossOfDataTheNewHolderIsNotTakenForDead) {
  const auto old = connect(url());
  const Mutex mutex(old, "r");
  {
    for (int i = 0; i < 20; ++i) Mutex(old, "other").acquire().release();
    const auto held = Mutex(connect(url()), "r").acquire();
    EXPECT_FALSE(mutex.try_acquire());
  }
  servers().lose_data();
  const auto next = Mutex(connect(url()), "r", patient(5s)).acquire();
  std::this_thread::sleep_for(5500ms);  // longer than its TTL, since it was first seen
  for (int i = 0; i < 5; ++i) {
    const auto stolen = mutex.try_acquire();  // unless the machine is so slow that it was lost
    EXPECT_FALSE(stolen && next);
  }
}

// Expected: it hides no other lock. Whoever asks for that very one is told.
TEST_F(ServerFaults, AForeignValueHidesNoOtherLock) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "r").acquire();
  servers().ctl({"put", "interlock/broken\thx", "something else"});
  const auto all = locks.inspect({}).resources;
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all.front().resource, "r");
  const auto expect_told = [](const auto& ask) {
    try {
      ask();
      ADD_FAILURE() << "it can't be read";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt);
      EXPECT_NE(std::string(error.what()).find("interlock/broken"), std::string::npos);
    }
  };
  expect_told([&] { static_cast<void>(locks.inspect({.resources = {"broken"}})); });
  expect_told([&] { static_cast<void>(Mutex(locks, "broken").try_acquire()); });
  // Nor does it leave anybody in line who was told so.
  static_cast<void>(queue_up(Mutex(locks, "r")));
  expect_told([&] { static_cast<void>(Mutex(locks, "broken").acquire()); });
  servers().ctl({"del", "interlock/broken\thx"});
  EXPECT_TRUE(Mutex(locks, "broken").try_acquire());
}

TEST_F(ServerFaults, AnIdleStoreIsEmpty) {
  {
    const auto locks = connect(url());
    auto lease = MultiLock(locks, {"a", "b/c"}).acquire();
    // Given up between two calls: one that is given up itself has to be recalled, which leaves a key.
    auto waiting = queue_up(Mutex(locks, "a"));
    waiting.cancel();
    EXPECT_FALSE(waiting.attempt());
    const Mutex b(connect(url()), "b");
    EXPECT_FALSE(b.try_acquire());
    lease.release();
  }
  EXPECT_TRUE(eventually([&] {
    return servers().ctl({"get", "", "--from-key"}).empty();
  })) << servers().ctl({"get", "", "--from-key"});
}

}  // namespace
}  // namespace interlock::etcd_tests
