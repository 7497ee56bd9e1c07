// The server is killed, restarted, stopped, full, failed over. Each test says what holders and waiters
// have to be told, in both modes.
#include <atomic>
#include <thread>

#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class ServerFaults : public PostgresTest {
 protected:
  using PostgresTest::PostgresTest;

  void kill_and_restart() {
    server().stop(SIGKILL);
    server().start();
  }
  static bool told(Lease& lease) {
    return eventually([&] { return lease.lost().stop_requested(); });
  }
};

// A crash ends all sessions. Expected: every lease is lost at once, with ten minutes left; whoever
// comes next has a larger fence.
TEST_F(ServerFaults, KilledInAdvisoryModeTheHolderKnowsAtOnce) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  const auto begin = BootClock::now();
  server().stop(SIGKILL);
  EXPECT_TRUE(told(lease));
  EXPECT_LT(BootClock::now() - begin, kAboutASecond * 4);
  EXPECT_EQ(lease.state(), LeaseState::lost);
  server().start();
  const auto next = mutex.acquire();
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(next) << "not the old one's to release";
}

// Expected: the waiter queues again by itself, and gets what nobody holds any more.
TEST_F(ServerFaults, KilledInAdvisoryModeTheWaiterGetsIt) {
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  const Mutex other(connect(url()), "r", kPatient);
  auto waiting = queue_up(other, url());
  kill_and_restart();
  EXPECT_GT(waiting.lease().fence(), lease.fence());
  EXPECT_TRUE(told(lease));
}

// Rows are on disk. Expected: nothing happened. The holder holds on, with the same fence, nobody
// else gets in, and the waiter keeps waiting until it is released.
TEST_F(ServerFaults, KilledInLeaseModeTheLeaseLivesOn) {
  const Mutex mutex(connect(lease_url()), "r", kPatient);
  auto lease = mutex.acquire();
  const Mutex other(connect(lease_url()), "r", kPatient);
  auto waiting = queue_up(other, lease_url());
  const auto fence = lease.fence();
  kill_and_restart();
  EXPECT_FALSE(Mutex(connect(lease_url()), "r").try_acquire());
  EXPECT_TRUE(still_held(lease));
  EXPECT_FALSE(waiting.over());
  EXPECT_EQ(lease.fence(), fence);
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_GT(waiting.lease().fence(), fence);
}

// An acquire is stuck on the way until its client has given up, asked again and released. Expected: the
// session that it was sent to has ended by then, and so it is never carried out.
TEST_F(ServerFaults, AnAcquireThatArrivesAfterTheReleaseIsNotCarriedOut) {
  servers::Proxy proxy(server().port());
  const auto client = connect(url(proxy, "mode=lease&timeout=1s"));
  Mutex(client, "another", kPatient).acquire().release();
  EXPECT_EQ(sessions(), 1);
  proxy.keep(servers::Proxy::to_server, "interlock:late");
  Mutex(client, "late", kPatient).acquire().release();
  EXPECT_EQ(proxy.faults(), 1);
  EXPECT_EQ(sessions(), 1);
  proxy.deliver();
  EXPECT_EQ(holders("late", lease_url()), 0U);
}

// A session is lost, and so is the next one while it is greeted. Expected: the one after ends the
// first, which the server has not given up.
TEST_F(ServerFaults, ASessionIsEndedAlsoIfItsSuccessorFailed) {
  servers::Proxy proxy(server().port());
  const auto client = connect(url(proxy, "timeout=1s"));
  const Options options{.ttl = 5s, .retry = kPatient.retry};
  Mutex(client, "another", options).acquire().release();
  proxy.keep(servers::Proxy::to_server, "interlock:late");
  proxy.cut_at(servers::Proxy::to_server, "LISTEN");
  Mutex(client, "late", options).acquire().release();
  EXPECT_EQ(proxy.faults(), 2);
  EXPECT_TRUE(eventually([&] { return sessions() == 1; }));
}

// An orderly restart, while both modes are in use and others come and go. Expected: nobody overlaps.
TEST_F(ServerFaults, RestartedUnderLoadNobodyOverlaps) {
  for (const auto& where : {url(), lease_url()}) {
    std::atomic<int> inside = 0;
    std::atomic<int> overlaps = 0;
    std::atomic<int> turns = 0;
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Mutex mutex(connect(where), "r",
                          {.ttl = 5s, .retry = {.attempts = 200, .first = 20ms, .max = 100ms}});
        while (!over) {
          try {
            auto lease = mutex.acquire();
            if (inside.fetch_add(1) != 0 && lease.state() == LeaseState::held) ++overlaps;
            std::this_thread::sleep_for(1ms);
            inside.fetch_sub(1);
            ++turns;
            if (lease.release() != LeaseState::released) continue;
          } catch (const Error& error) {
            EXPECT_TRUE(error.retryable()) << error.what();
          }
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return turns > 20; }));
    const int before = turns;
    server().restart();
    EXPECT_TRUE(eventually([&] { return turns > before + 20; }));
    over = true;
    for (auto& thread : threads) thread.join();
    EXPECT_LE(overlaps.load(), where == url() ? 1 : 0)
        << "a session's end is known a moment later than it is";
  }
}

// Down for good. Expected: a waiter and a one-shot are told that the store can't be reached, which
// is neither busy nor timed out, and by name.
TEST_F(ServerFaults, AServerThatStaysDownIsUnreachable) {
  for (const auto& where : {url(), lease_url()}) {
    const Mutex mutex(connect(where), "r", {.retry = {.attempts = 3, .first = 1ms}});
    { auto lease = mutex.acquire(); }
    server().stop(SIGKILL);
    for (int i = 0; i < 2; ++i) {
      try {
        const auto attempt = i == 0 ? mutex.try_acquire() : mutex.try_acquire_for(kPatience);
        ADD_FAILURE() << "there is no server: " << to_string(attempt.outcome());
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
        EXPECT_EQ(error.resource(), "r");
        EXPECT_FALSE(error.node().empty());
      }
    }
    server().start();
  }
}

// Behind a proxy that swallows everything: a pulled cable. Expected: the holder knows when its
// validity ends, with no answer from anybody; and the next one gets in.
TEST_F(ServerFaults, CutOffTheHolderKnowsWhenItsTimeEnds) {
  for (const std::string mode : {"advisory", "lease"}) {
    servers::Proxy proxy(server().port());
    const Mutex mutex(connect(url(proxy, "timeout=500ms&mode=" + mode)), "r-" + mode, {.ttl = 2s});
    auto lease = mutex.acquire();
    proxy.stall(servers::Proxy::to_server);
    proxy.stall(servers::Proxy::to_client);
    EXPECT_TRUE(told(lease));
    const auto next = Mutex(connect(url("mode=" + mode)), "r-" + mode).acquire();
    EXPECT_EQ(lease.state(), LeaseState::lost);
    EXPECT_GT(next.fence(), lease.fence());
  }
}

// All connections are taken. Expected: unreachable, saying so; and as soon as there is room, it works.
class FullServer : public ServerFaults {
 protected:
  FullServer() : ServerFaults({"max_connections=5", "superuser_reserved_connections=0"}) {}
};

TEST_F(FullServer, NoConnectionLeftIsUnreachable) {
  std::vector<std::unique_ptr<servers::PostgresConsole>> crowd;
  const auto fill = [&] {
    for (int i = 0; i < 5; ++i) {
      crowd.push_back(std::make_unique<servers::PostgresConsole>(server().url()));
      (void)(*crowd.back())("SELECT 1");
    }
  };
  fill();
  const Mutex mutex(connect(url()), "r", {.retry = {.attempts = 2, .first = 1ms}});
  try {
    static_cast<void>(mutex.acquire());
    ADD_FAILURE() << "there was room";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    EXPECT_NE(std::string(error.what()).find("too many clients"), std::string::npos)
        << error.what();
  }
  crowd.clear();
  EXPECT_TRUE(eventually([&] {
    try {
      return static_cast<bool>(mutex.try_acquire());
    } catch (const Error&) {
      return false;
    }
  }));
}

// Two addresses, of which the first one goes away. Expected: locks go on at the other one. It is the
// same server here, so leases of lease mode survive, and those of a session do not.
TEST_F(ServerFaults, AnAddressThatFailedOverIsFollowed) {
  auto first = std::make_unique<servers::Proxy>(server().port());
  const auto both = "postgres://postgres@127.0.0.1:" + std::to_string(first->port()) + "," +
                    server().address() + "/postgres?timeout=2s";
  const Mutex mutex(connect(both + "&mode=lease"), "r", kPatient);
  auto lease = mutex.acquire();
  const Mutex session_mutex(connect(both), "s", kPatient);
  auto session_lease = session_mutex.acquire();
  first.reset();
  EXPECT_TRUE(told(session_lease));
  EXPECT_TRUE(session_mutex.acquire());
  EXPECT_TRUE(eventually([&] {
    try {
      return lease.extend(600s);
    } catch (const Error& error) {
      return !error.retryable();
    }
  }));
  EXPECT_EQ(lease.state(), LeaseState::held);
}

// A transaction that has looked at everything and does not end, and one that has locked our tables.
// Expected: the first is in nobody's way; the second makes calls fail as unreachable, in time, breaks
// no session, and when it ends all goes on.
TEST_F(ServerFaults, ALongTransactionIsNotInTheWay) {
  for (const auto& where : {url("timeout=1s"), lease_url("timeout=1s")}) {
    const Mutex mutex(connect(where), "r", {.ttl = 600s, .retry = {.attempts = 1}});
    auto lease = mutex.acquire();
    servers::PostgresConsole longer(server().url());
    EXPECT_EQ(longer("BEGIN ISOLATION LEVEL REPEATABLE READ"), "");
    EXPECT_NE(longer("SELECT count(*) FROM interlock.locks"), "(nothing)");
    EXPECT_EQ(lease.release(), LeaseState::released);
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(mutex.acquire());
    lease = mutex.acquire();
    EXPECT_EQ(longer("LOCK TABLE interlock.locks, interlock.leases"), "");
    try {
      static_cast<void>(lease.extend(600s));
      ADD_FAILURE() << "the table is locked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    }
    EXPECT_EQ(longer("ROLLBACK"), "");
    EXPECT_TRUE(eventually([&] {
      try {
        return lease.extend(600s);
      } catch (const Error& error) {
        return !error.retryable();
      }
    }));
    EXPECT_EQ(lease.state(), LeaseState::held) << lease.lost_reason();
    EXPECT_EQ(lease.release(), LeaseState::released);
  }
}

// The server's clock is an hour ahead, and in another time zone. Expected: nobody notices, as each
// counts time by itself.
class ServerAhead : public ServerFaults {
 protected:
  ServerAhead() : ServerFaults({"timezone=Asia/Kathmandu"}, {"faketime", "-f", "+1h"}) {}
};

TEST_F(ServerAhead, AClockThatDiffersChangesNothing) {
  const auto ahead = std::stoll(sql("SELECT extract(epoch FROM clock_timestamp())::bigint")) -
                     std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  EXPECT_GT(ahead, 3000) << "the test needs faketime";
  for (const auto& where : {url(), lease_url()}) {
    const Mutex mutex(connect(where), "r", {.ttl = 30s});
    auto lease = mutex.acquire();
    const auto seen = look("r", where).holders.at(0);
    EXPECT_GT(seen.remaining, 10s);
    EXPECT_LE(seen.remaining, 30s);
    EXPECT_LT(seen.age, 20s);
    EXPECT_GT(lease.time_remaining(), 10s);
    EXPECT_FALSE(Mutex(connect(where), "r").try_acquire());
    const Mutex brief(connect(where), "brief", {.ttl = 500ms, .renew = false});
    const auto ends = brief.acquire();
    EXPECT_TRUE(Mutex(connect(where), "brief").acquire()) << "it ends by its time";
    EXPECT_EQ(ends.state(), LeaseState::lost);
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
