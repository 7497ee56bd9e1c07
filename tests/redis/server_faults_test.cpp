// The server is killed, stopped, emptied, full. Each test says what has to come of it.
#include <atomic>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

// Comes back soon after the server does.
const Options kPatient{.ttl = 600s, .retry = {.attempts = 200, .first = 20ms, .max = 200ms}};

class ServerFaults : public RedisTest {
 protected:
  using RedisTest::RedisTest;

  void kill_and_restart() {
    server().stop(SIGKILL);
    server().start();
    ASSERT_TRUE(eventually([&] { return console()("PING") == "PONG"; }));
  }
  [[nodiscard]] Waiting queue_up(const Mutex& mutex) {
    const auto before = waiters(mutex.resource());
    Waiting waiting(mutex);
    EXPECT_TRUE(eventually([&] { return waiters(mutex.resource()) > before; }));
    return waiting;
  }
};

class DurableServerFaults : public ServerFaults {
 protected:
  DurableServerFaults() : ServerFaults({"--appendonly", "yes", "--appendfsync", "always"}) {}
};

// Killed and restarted, with its data on disk. Expected: nothing happened. The holder holds on, with
// the same fence, and nobody else gets in.
TEST_F(DurableServerFaults, KilledWhileHeldWithAofTheLeaseLivesOn) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  kill_and_restart();
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire());
  EXPECT_TRUE(still_held(lease));
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_EQ(lease.release(), LeaseState::released);
  const auto next = Mutex(connect(url()), "r").acquire();
  EXPECT_GT(next.fence(), lease.fence());
}

/// How often a release in the background was not confirmed.
class CleanUps final : public Observer {
 public:
  void on(const Observation& seen) noexcept override {
    if (seen.event == Event::cleanup_failed) ++failed_;
  }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  std::atomic<int> failed_ = 0;
};

// The server is away, and a program tries again and again. Expected: what never left for the server is
// not cleaned up after, which would go on for as long as the TTL for each try.
TEST_F(ServerFaults, TriesDuringAnOutageLeaveNothingToCleanUp) {
  const auto seen = std::make_shared<CleanUps>();
  server().stop(SIGKILL);
  const Client locks = connect(url(), {.observer = seen});
  const Mutex mutex(locks, "r", {.ttl = 600s, .retry = Retry::none()});
  for (int i = 0; i < 8; ++i) EXPECT_THROW((void)mutex.try_acquire(), Error);
  EXPECT_THROW((void)mutex.try_acquire_for(300ms), Error);
  server().start();
  EXPECT_TRUE(Mutex(locks, "r", kPatient).acquire());
  EXPECT_EQ(seen->failed(), 0);
}

// Expected: the waiter is still in line, is not let in, and is woken by the release as ever, though
// its subscription had to be made anew.
TEST_F(DurableServerFaults, KilledWhileWaitedForWithAofTheWaiterWaitsOn) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  const Mutex other(connect(url()), "r", kPatient);
  auto waiting = queue_up(other);
  kill_and_restart();
  EXPECT_TRUE(still_held(lease));
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1 && listeners() == 1; }));
  EXPECT_FALSE(waiting.over());
  const auto fence = lease.fence();
  lease.release();
  EXPECT_GT(waiting.lease().fence(), fence);
}

// Killed and restarted without its data. Expected: the lock is gone. The holder is told at its next
// renewal, and whoever comes next has a larger fence though the counter is gone, too.
TEST_F(ServerFaults, KilledWhileHeldWithoutAofTheHolderIsToldThatItLost) {
  const Mutex mutex(connect(url()), "r", {.ttl = 3s});
  auto lease = mutex.acquire();
  kill_and_restart();
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_FALSE(lease.lost_reason().empty());
  const auto next = mutex.acquire();
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(next) << "not the old one's to release";
}

// Expected: the waiter queues again by itself, and gets what nobody holds any more.
TEST_F(ServerFaults, KilledWhileWaitedForWithoutAofTheWaiterGetsIt) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  const Mutex other(connect(url()), "r", kPatient);
  auto waiting = queue_up(other);
  kill_and_restart();
  EXPECT_GT(waiting.lease().fence(), lease.fence());
  EXPECT_FALSE(still_held(lease));
}

// Down for good. Expected: a waiter and a one-shot are told that the store can't be reached, which
// is neither busy nor timed out, and by name.
// Row 2.4.
TEST_F(ServerFaults, AServerThatStaysDownIsUnreachable) {
  const Mutex mutex(connect(url()), "r", {.retry = {.attempts = 3, .first = 1ms}});
  auto lease = mutex.acquire();
  server().stop(SIGKILL);
  for (int i = 0; i < 2; ++i) {
    try {
      const auto attempt = i == 0 ? mutex.try_acquire() : mutex.try_acquire_for(kPatience);
      ADD_FAILURE() << "there is no server: " << to_string(attempt.outcome());
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable);
      EXPECT_TRUE(error.retryable());
      EXPECT_EQ(error.resource(), "r");
      EXPECT_EQ(error.node(), url());
    }
  }
}

// Stopped for longer than the TTL. Expected: the holder knows at its end, with no answer from
// anybody; when the server wakes, the next one gets in with a larger fence, and the renewals that
// were on their way bring nothing back.
TEST_F(ServerFaults, StoppedLongerThanTheTtlTheHolderKnowsWithoutAnAnswer) {
  const Mutex mutex(connect(url() + "?timeout=500ms"), "r", {.ttl = 1s});
  auto lease = mutex.acquire();
  server().process().signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::lost);
  server().process().signal(SIGCONT);
  const auto next = Mutex(connect(url()), "r").acquire();
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_NE(lease.release(), LeaseState::released);
  EXPECT_TRUE(next);
}

// Expected: the waiter does not take the silence for an answer, and is served when the server wakes.
TEST_F(ServerFaults, StoppedWhileWaitedForTheWaiterIsServedAfterwards) {
  const Mutex mutex(connect(url() + "?timeout=300ms"), "r", {.ttl = 1s, .renew = false});
  const auto lease = mutex.acquire();
  const Mutex other(connect(url() + "?timeout=300ms"), "r", kPatient);
  auto waiting = queue_up(other);
  server().process().signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::lost; }));
  EXPECT_FALSE(waiting.over());
  server().process().signal(SIGCONT);
  EXPECT_GT(waiting.lease().fence(), lease.fence());
}

// An acquire that the server does only after the caller has given up. Expected: unreachable, and in
// doubt; and what it then did is undone in the background.
TEST_F(ServerFaults, WhatAStoppedServerDoesLaterIsUndone) {
  const Client client = connect(url() + "?timeout=300ms");
  const Mutex mutex(client, "r", {.ttl = 600s});
  mutex.acquire().release();
  server().process().signal(SIGSTOP);
  try {
    const auto attempt = mutex.try_acquire();
    ADD_FAILURE() << to_string(attempt.outcome());
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_TRUE(error.maybe_held());
  }
  server().process().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// The clock of a server is set back, or, which is the same: all times that it keeps are later.
constexpr auto kLater = R"(
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left, ms = redis.call('PTTL', key), 3600000
  if string.find(key, ':ends$') then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, ms, member) end
  elseif string.find(key, ':waiting$') then
    for _, owner in ipairs(redis.call('HKEYS', key)) do
      local ends, rest = string.match(redis.call('HGET', key, owner), '^(%d+)(.*)$')
      redis.call('HSET', key, owner, string.format('%.0f', ends + ms) .. rest)
    end
  elseif string.find(key, ':fence$') then
    redis.call('INCRBY', key, ms * 1000)
  end
  if left > 0 then redis.call('PEXPIRE', key, left + ms) end
end
return 'done')";

// The clock is set back by an hour. Expected: holders that are gone are freed after a TTL, whatever they
// held and whoever wants it; and fences rise.
// Rows 1.3 and 2.9: the server's clock counts.
TEST_F(ServerFaults, AClockThatIsSetBackKeepsNoDeadHolders) {
  const Options brief{.ttl = 1s};
  auto exclusive = Mutex(onlooker(), "exclusive", brief).acquire();
  const auto fence = exclusive.fence();
  static_cast<void>(exclusive.detach());
  static_cast<void>(Mutex(onlooker(), "read later", brief).acquire().detach());
  static_cast<void>(RwLock(onlooker(), "shared", brief).read().detach());
  static_cast<void>(RwLock(onlooker(), "shared", brief).read().detach());
  static_cast<void>(Semaphore(onlooker(), "slots", 1, brief).acquire().detach());
  static_cast<void>(Mutex(onlooker(), "of one", {.ttl = 1s, .identity = "one"}).acquire().detach());
  ASSERT_EQ(console()({"EVAL", kLater, "0"}), "done");
  const auto client = connect(url());
  auto next = Mutex(client, "exclusive", kPatient).try_acquire_for(kPatience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), fence);
  EXPECT_TRUE(RwLock(client, "read later", kPatient).try_read_for(kPatience));
  EXPECT_TRUE(RwLock(client, "shared", kPatient).try_write_for(kPatience));
  EXPECT_TRUE(Semaphore(client, "slots", 1, kPatient).try_acquire_for(kPatience));
  EXPECT_TRUE(Mutex(client, "of one", kPatient).try_acquire_for(kPatience));
}

// The server evicts one of the keys of a lock. Expected: its holders can be broken, and the next one gets it, however long the
// TTL was.
TEST_F(ServerFaults, AKeyThatWasEvictedBlocksNobody) {
  const Options lasting{.ttl = 600s, .renew = false};
  const auto free = [&](const std::string& name) {
    return name == "exclusive" ? Mutex(onlooker(), name, lasting).try_acquire()
           : name == "shared"  ? RwLock(onlooker(), name, lasting).try_write()
                               : Semaphore(onlooker(), name, 1, lasting).try_acquire();
  };
  for (const std::string name : {"exclusive", "shared", "slots"}) {
    for (const std::string key : {"", ":holders", ":ends"}) {
      for (int readers = name == "shared" ? 2 : 1; readers > 0; --readers) {
        auto lease = name == "shared" ? RwLock(onlooker(), name, lasting).try_read() : free(name);
        ASSERT_TRUE(lease) << name << " before " << key;
        static_cast<void>(lease->detach());
      }
      (void)console()(
          {"DEL", key.empty() ? "interlock:" + name : "{interlock:" + name + "}" + key});
      for (const auto& resource : onlooker().inspect({.resources = {name}}).resources) {
        for (const auto& holder : resource.holders) (void)onlooker().evict(name, holder.owner);
      }
      EXPECT_TRUE(free(name)) << name << " without " << key;
    }
  }
}

// The same, and a waiter is killed. Expected: the next one is served within seconds.
TEST_F(ServerFaults, AClockThatIsSetBackKeepsNoDeadWaiters) {
  auto lease = Mutex(onlooker(), "r", kPatient).acquire();
  auto killed = queued_holder("r");
  killed.kill();
  ASSERT_EQ(console()({"EVAL", kLater, "0"}), "done");
  ASSERT_EQ(console()("DEL interlock:r"), "1");  // nobody is told
  EXPECT_TRUE(Mutex(connect(url()), "r", kPatient).try_acquire_for(kPatience));
}

// The same on all servers of a Redlock.
TEST(RedlockFaults, ClocksThatAreSetBackKeepNoDeadHolders) {
  const std::vector<servers::RedisServer> nodes(3);
  const auto url =
      "redlock://" + nodes[0].address() + "," + nodes[1].address() + "," + nodes[2].address();
  const auto gone = connect(url);
  static_cast<void>(Mutex(gone, "exclusive", {.ttl = 1s}).acquire().detach());
  static_cast<void>(RwLock(gone, "shared", {.ttl = 1s}).read().detach());
  for (const auto& node : nodes) ASSERT_EQ(Console(node.port())({"EVAL", kLater, "0"}), "done");
  const auto client = connect(url);
  EXPECT_TRUE(Mutex(client, "exclusive", kPatient).try_acquire_for(kPatience));
  EXPECT_TRUE(RwLock(client, "shared", kPatient).try_write_for(kPatience));
}

// The same, and a holder lives that was extended. Expected: it keeps all of its time, whoever looks.
TEST_F(ServerFaults, AClockThatIsSetBackEndsNoLeaseEarly) {
  const Options brief{.ttl = 2s, .renew = false};
  auto lease = Mutex(onlooker(), "r", brief).acquire();
  auto read = RwLock(onlooker(), "rw", brief).read();
  ASSERT_TRUE(lease.extend(600s));
  ASSERT_TRUE(read.extend(600s));
  ASSERT_EQ(console()({"EVAL", kLater, "0"}), "done");
  ASSERT_TRUE(lease.extend(3s));  // shortens nothing
  ASSERT_TRUE(read.extend(3s));
  const auto client = connect(url());
  EXPECT_FALSE(Mutex(client, "r").try_acquire());
  EXPECT_FALSE(Mutex(client, "r").try_acquire_for(50ms));
  EXPECT_FALSE(RwLock(client, "rw").try_write());
  for (const std::string key : {"interlock:r", "interlock:rw"}) {
    const auto left = std::stoll(console()("PTTL " + key));
    EXPECT_GT(left, 500'000) << key;
  }
  EXPECT_LT(std::stoll(console()("PTTL interlock:r")), 600'001);
  EXPECT_TRUE(still_held(lease));
  EXPECT_TRUE(still_held(read));
}

// SCRIPT FLUSH. Expected: nobody notices, in any operation.
// Row 2.9.
TEST_F(ServerFaults, ForgottenScriptsAreSentAgain) {
  const Client client = connect(url());
  const Mutex mutex(client, "r", kPatient);
  EXPECT_EQ(console()("SCRIPT FLUSH"), "OK");
  auto lease = mutex.acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", kPatient));
  EXPECT_EQ(console()("SCRIPT FLUSH"), "OK");
  EXPECT_TRUE(lease.extend(600s));
  EXPECT_EQ(console()("SCRIPT FLUSH"), "OK");
  EXPECT_EQ(client.inspect({.resources = {"r"}}).resources.at(0).holders.size(), 1U);
  EXPECT_EQ(console()("SCRIPT FLUSH"), "OK");
  const auto fence = lease.fence();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_EQ(console()("SCRIPT FLUSH"), "OK");
  EXPECT_GT(waiting.lease().fence(), fence);
}

// FLUSHALL. Expected: the holder is told, the waiter gets it without waiting for the TTL, and the
// fence is larger though its counter is gone.
TEST_F(ServerFaults, FlushallIsALossThatIsTold) {
  const Mutex mutex(connect(url()), "r", {.ttl = 3s});
  const auto lease = mutex.acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", kPatient));
  EXPECT_EQ(console()("FLUSHALL"), "OK");
  const auto next = waiting.lease();
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_TRUE(next);
}

// Every connection is killed by the administrator. Expected: holders hold on, waiters stay in line
// and are woken, all through new connections.
TEST_F(ServerFaults, KilledConnectionsAreMadeAnew) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r", kPatient));
  for (int i = 0; i < 3; ++i) {
    console()("CLIENT KILL TYPE normal SKIPME yes");
    console()("CLIENT KILL TYPE pubsub");
    EXPECT_TRUE(still_held(lease));
    EXPECT_TRUE(eventually([&] { return listeners() == 1; }));
  }
  EXPECT_EQ(waiters("r"), 1U);
  EXPECT_FALSE(waiting.over());
  const auto fence = lease.fence();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_GT(waiting.lease().fence(), fence);
}

// The server's memory is full. Expected: a new lock is refused, with an error that says why and is
// not taken for busy or unreachable; what is held can be renewed and released, of every kind.
TEST_F(ServerFaults, AFullServerRefusesNewLocksAndKeepsOldOnes) {
  const Client client = connect(url());
  auto lease = Mutex(client, "mutex", kPatient).acquire();
  auto read = RwLock(client, "rw", kPatient).read();
  auto slot = Semaphore(client, "semaphore", 3, kPatient).acquire();
  auto several = MultiLock(client, {"tree/a", "tree/b"}, kPatient).acquire();
  EXPECT_EQ(console()("CONFIG SET maxmemory 1"), "OK");

  const std::vector<std::pair<const char*, Acquirer>> refused{
      {"mutex", Mutex(client, "new")},
      {"taken", Mutex(client, "mutex")},
      {"reader", RwLock(client, "rw").reader()},
      {"slot", Semaphore(client, "semaphore", 3)},
      {"several", MultiLock(client, {"new/a", "new/b"})}};
  for (const auto& [what, acquirer] : refused) {
    try {
      const auto attempt = acquirer.try_acquire_for(kPatience);
      ADD_FAILURE() << what << ": " << to_string(attempt.outcome());
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << what;
      EXPECT_NE(std::string(error.what()).find("memory is full"), std::string::npos)
          << error.what();
      EXPECT_FALSE(error.maybe_held());
    }
  }
  for (auto* held : {&lease, &read, &slot, &several}) {
    EXPECT_TRUE(held->extend(600s)) << held->resource();
    EXPECT_EQ(held->release(), LeaseState::released) << held->resource();
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
  EXPECT_EQ(console()("CONFIG SET maxmemory 0"), "OK");
  EXPECT_TRUE(Mutex(client, "new").try_acquire());
}

// The same for those who wait already. Expected: they go on waiting, and get it in their turn.
TEST_F(ServerFaults, AFullServerStillServesThoseWhoWait) {
  const auto client = connect(url());
  auto lease = Mutex(client, "mutex", kPatient).acquire();
  auto write = RwLock(client, "rw", kPatient).write();
  Waiting next(Mutex(onlooker(), "mutex", kPatient));
  EXPECT_TRUE(eventually([&] { return waiters("mutex") == 1; }));
  Waiting after(Mutex(onlooker(), "mutex", kPatient));
  Waiting reader(RwLock(onlooker(), "rw", kPatient).reader());
  EXPECT_TRUE(eventually([&] { return waiters("mutex") == 2 && waiters("rw") == 1; }));
  EXPECT_EQ(console()("CONFIG SET maxmemory 1"), "OK");
  // Longer than a place in the queue lasts without a sign of life.
  const auto until = BootClock::now() + 4s;
  EXPECT_TRUE(eventually([&] { return BootClock::now() > until; }));
  EXPECT_EQ(waiters("mutex"), 2U);
  EXPECT_EQ(waiters("rw"), 1U);
  lease.release();
  write.release();
  next.lease().release();
  after.lease().release();
  reader.lease().release();
}

// Fences grow across everything that can happen to one server.
TEST_F(ServerFaults, FencesGrowWhateverHappensToTheServer) {
  const Mutex mutex(connect(url()), "r", kPatient);
  Fence last{};
  const auto grows = [&](const char* when) {
    const auto lease = mutex.acquire();
    EXPECT_GT(lease.fence(), last) << when;
    last = lease.fence();
  };
  grows("at first");
  grows("at once");
  console()("SCRIPT FLUSH");
  grows("after SCRIPT FLUSH");
  console()("FLUSHALL");
  grows("after FLUSHALL");
  kill_and_restart();
  grows("after kill and restart");
  server().restart();
  grows("after an orderly restart");
  console()("DEL " + std::string(kOnlyTheFence));
  grows("after the counter was deleted");
  for (const std::string value : {"99", "nonsense"}) {
    console()({"SET", kOnlyTheFence, value});
    grows("after somebody else wrote to the counter");
  }
  // A server whose clock stands behind what it has granted, as after a failover.
  console()({"SET", kOnlyTheFence, std::to_string(last.value + 3'600'000'000)});
  last.value += 3'600'000'000;
  grows("while the clock is behind");
  grows("while the clock is behind, again");
}

}  // namespace
}  // namespace interlock::redis_tests
