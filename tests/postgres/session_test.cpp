// Advisory mode: locks belong to a session, and end with it.
#include <algorithm>
#include <atomic>
#include <future>

#include "backends/postgres/settings.hpp"
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Session : public PostgresTest {
 protected:
  using PostgresTest::PostgresTest;

  [[nodiscard]] static std::string id(const std::string& name) {
    return std::to_string(postgres::id_of("interlock:", name));
  }
};

// The same in every build and language: docs/postgres.md shows how psql gets them.
// Row 0.5.
TEST_F(Session, ANameHasTheSameNumberEverywhere) {
  EXPECT_EQ(postgres::id_of("interlock:", "nightly"), -8406566624594013923);
  EXPECT_EQ(postgres::id_of("interlock:", "orders/42"), 2863093488613469035);
  EXPECT_EQ(postgres::id_of("", "naïve ✓"), 6628685116494054322);
  EXPECT_EQ(postgres::id_of("", ""), -2039914840885289964);
  for (const std::string name : {"nightly", "orders/42", "naïve ✓"}) {
    EXPECT_EQ(sql("SELECT ('x' || encode(substr(sha256(convert_to('interlock:" + name +
                  "', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint"),
              id(name));
  }
}

// What an administrator sees: the lock in pg_locks, its name in pg_stat_activity, and who, since
// when, until when and with which fence in the table. Nothing of it is left behind.
TEST_F(Session, APersonCanSeeWhoHoldsWhat) {
  const Mutex mutex(connect(url()), "nightly", {.ttl = 600s, .label = "backup"});
  auto lease = mutex.acquire();
  EXPECT_TRUE(eventually([&] {
    return sql("SELECT label, number, mode FROM interlock.locks WHERE expires > now() + '590 s'") ==
           "backup|" + std::to_string(lease.fence().value) + "|e";
  }));
  EXPECT_TRUE(eventually([&] {
    return sql("SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
               "WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND "
               "(l.classid::bigint << 32) | l.objid::bigint = " +
               id("nightly")) == "interlock: nightly";
  }));
  lease.release();
  EXPECT_EQ(sql("SELECT count(*) FROM interlock.locks"), "0");
  EXPECT_EQ(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"), "0");
  EXPECT_TRUE(eventually([&] {
    return sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock'") == "1";
  }));
}

// Locks of programs that know only the number. Expected: we wait for them, and they for us.
// Row 0.5.
TEST_F(Session, LocksOfOtherProgramsCount) {
  const Mutex mutex(connect(url()), "r", kPatient);
  EXPECT_EQ(sql("SELECT pg_try_advisory_lock(" + id("r") + ")"), "t");
  EXPECT_FALSE(mutex.try_acquire());
  auto waiting = queue_up(mutex, url());
  EXPECT_EQ(sql("SELECT pg_advisory_unlock(" + id("r") + ")"), "t");
  auto lease = waiting.lease();
  EXPECT_EQ(sql("SELECT pg_try_advisory_lock(" + id("r") + ")"), "f");
  EXPECT_EQ(sql("SELECT pg_try_advisory_lock_shared(" + id("r") + ")"), "f");
  lease.release();
  EXPECT_EQ(sql("SELECT pg_try_advisory_lock_shared(" + id("r") + ")"), "t");
  EXPECT_FALSE(mutex.try_acquire());
  EXPECT_TRUE(RwLock(connect(url()), "r").try_read());
}

// The holder is killed. Expected: its session ends, and the waiter has the lock with ten minutes left.
// Row 0.5.
TEST_F(Session, AKilledHolderIsFreedAtOnce) {
  auto child = holder(url(), "r");
  child.after("held ");
  const Mutex mutex(connect(url()), "r", kPatient);
  auto waiting = queue_up(mutex, url());
  const auto begin = BootClock::now();
  child.kill();
  EXPECT_TRUE(waiting.lease());
  EXPECT_LT(BootClock::now() - begin, kAboutASecond);
}

// An administrator ends the session. Expected: every lease on it is lost at once, the next one gets
// in, and the client goes on with a new session.
TEST_F(Session, ATerminatedSessionLosesItsLeasesAtOnce) {
  const auto client = connect(url());
  auto one = Mutex(client, "one", kPatient).acquire();
  auto two = RwLock(client, "two", kPatient).read();
  EXPECT_EQ(session_of("one"), session_of("two")) << "one session for all";
  EXPECT_EQ(sql("SELECT pg_terminate_backend(" + session_of("one") + ")"), "t");
  EXPECT_TRUE(
      eventually([&] { return one.lost().stop_requested() && two.lost().stop_requested(); }));
  EXPECT_NE(one.lost_reason().find("the session with the server has ended"), std::string::npos)
      << one.lost_reason();
  EXPECT_TRUE(Mutex(connect(url()), "one", kPatient).acquire());
  EXPECT_TRUE(Mutex(client, "one", kPatient).acquire());
  EXPECT_EQ(one.release(), LeaseState::lost);
}

// The holder is stopped for longer than its TTL. Expected: the next waiter ends its session and goes
// on; when it wakes, it knows that it lost.
// Row 0.5.
TEST_F(Session, AStoppedHolderIsEndedByTheNextWaiter) {
  auto child = holder(url(), "r", "1s");
  const auto fence = std::stoull(child.after("held "));
  const auto session = session_of("r");
  child.signal(SIGSTOP);
  const Mutex mutex(connect(url()), "r", kPatient);
  auto lease = mutex.acquire();
  EXPECT_GT(lease.fence().value, fence);
  EXPECT_EQ(sql("SELECT count(*) FROM pg_stat_activity WHERE pid = " + session), "0");
  ::kill(child.pid(), SIGCONT);
  child.after("lost");
  EXPECT_TRUE(lease);
}

// The same, and the waiter's role may not end the holder's session. Expected: it says so.
TEST_F(Session, WithoutTheRightToEndItTheWaiterSaysSo) {
  { auto made = Mutex(connect(url()), "r").acquire(); }
  sql("CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA interlock TO guest;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interlock TO guest;"
      "GRANT USAGE ON ALL SEQUENCES IN SCHEMA interlock TO guest");
  auto child = holder(url(), "r", "1s");
  child.after("held ");
  child.signal(SIGSTOP);
  try {
    static_cast<void>(Mutex(connect(server().url("guest")), "r", kPatient).acquire());
    ADD_FAILURE() << "guests may end no session of a superuser";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("pg_signal_backend"), std::string::npos);
  }
  ::kill(child.pid(), SIGCONT);
}

// A lease that is not renewed ends by itself, on a session with others. Expected: the others live on.
TEST_F(Session, ALeaseThatEndsTakesNoOtherAlong) {
  const auto client = connect(url());
  auto stays = Mutex(client, "stays", kPatient).acquire();
  const auto ends = Mutex(client, "ends", {.ttl = 500ms, .renew = false}).acquire();
  const auto next = Mutex(connect(url()), "ends", kPatient).acquire();
  EXPECT_EQ(ends.state(), LeaseState::lost);
  EXPECT_TRUE(stays.extend(600s));
  EXPECT_EQ(stays.state(), LeaseState::held);
}

// One that gave back a part of it. Expected: its time and its session still count for the rest.
TEST_F(Session, ALeaseWithoutSomeOfItsPartsEndsLikeAnyOther) {
  const auto client = connect(url());
  auto stays = Mutex(client, "stays", kPatient).acquire();
  auto ends = MultiLock(client, {"given back", "rest"}, {.ttl = 2s, .renew = false}).acquire();
  ends.release({"given back"});
  const auto next = Mutex(connect(url()), "rest", kPatient).acquire();
  EXPECT_TRUE(stays.extend(600s));
  EXPECT_EQ(stays.state(), LeaseState::held);
}

TEST_F(Session, ALeaseWithoutSomeOfItsPartsIsLostWithItsSession) {
  auto lease =
      MultiLock(connect(url()), {"given back", "rest"}, {.ttl = 600s, .renew = false}).acquire();
  lease.release({"given back"});
  sql("SELECT pg_terminate_backend(" + session_of("rest") + ")");
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
}

// Its holder is over, and does not let go. Expected: those in line don't ask all the time.
TEST_F(Session, WhatIsOverIsLookedForTenTimesASecond) {
  Mutex(connect(url()), "r").acquire().release();
  EXPECT_EQ(sql("SELECT interlock.lock_look(0, interval '-1 s', 2)"), "100000");
  EXPECT_EQ(sql("SELECT interlock.lock_look(99, interval '0', 2)"), "1000000");
}

// Taken away twice, from one that does not react. Expected: its other leases have the time they had.
TEST_F(Session, TakenAwayTwiceIsTakenAwayOnce) {
  auto child = holder(url(), "taken");
  child.after("held");
  const auto owner = look("taken", url()).holders.at(0).owner;
  child.signal(SIGSTOP);
  const auto client = connect(url());
  client.evict("taken", owner);
  client.evict("taken", owner);
  EXPECT_EQ(sql("SELECT spared > now() + interval '5 min' FROM interlock.locks"), "t");
  child.signal(SIGCONT);
}

// An operator takes a lock away. Expected: its holder is told at once and keeps its other leases, and
// the next one gets in.
TEST_F(Session, AnEvictedHolderIsToldAndKeepsTheRest) {
  const auto client = connect(url());
  auto stays = Mutex(client, "stays", kPatient).acquire();
  auto taken = Mutex(client, "taken", kPatient).acquire();
  connect(url()).evict("taken", taken.owner());
  const auto next = Mutex(connect(url()), "taken", kPatient).acquire();
  EXPECT_TRUE(eventually([&] { return taken.lost().stop_requested(); }));
  EXPECT_TRUE(stays.extend(600s));
}

// The way to the server breaks, and the server does not notice. Expected: the holder knows at once;
// its new session ends the old one, so that nobody waits for a ghost.
TEST_F(Session, ASessionThatWasLostIsEndedByTheNextOne) {
  servers::Proxy proxy(server().port());
  const auto client = connect(url(proxy));
  const Mutex mutex(client, "r", kPatient);
  auto lease = mutex.acquire();
  proxy.cut();
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_TRUE(mutex.acquire());
}

// A statement fails half-way: the disk is full, say. Expected: no lock is left that no row tells of.
TEST_F(Session, AFailureHalfwayLeavesNoLockBehind) {
  const Mutex mutex(connect(url()), "r", {.retry = {.attempts = 1}});
  { auto lease = mutex.acquire(); }
  sql("CREATE FUNCTION interlock.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space left'; END $$;"
      "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON interlock.locks DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION interlock.full()");
  try {
    static_cast<void>(mutex.acquire());
    ADD_FAILURE() << "there was room";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
  }
  EXPECT_TRUE(eventually([&] {
    return sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1") == "0";
  }));
  sql("DROP TRIGGER full_disk ON interlock.locks");
  EXPECT_TRUE(mutex.acquire());
}

// Locks of a session are counted, and nobody sees the count. Expected: after a failure, what a reader has
// too much is given back, and what it has is kept.
TEST_F(Session, AFailureGivesBackWhatWasCountedTwice) {
  const auto locks = connect(url());
  const RwLock lock(locks, "r", {.ttl = 600s, .retry = {.attempts = 1}});
  auto reader = lock.read();
  sql("CREATE FUNCTION interlock.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space left'; END $$;"
      "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON interlock.locks DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION interlock.full()");
  EXPECT_THROW(static_cast<void>(lock.read()), Error);
  sql("DROP TRIGGER full_disk ON interlock.locks");
  // The clean-up comes before this on the same session.
  EXPECT_TRUE(reader.extend(600s));
  EXPECT_EQ(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"), "1");
  EXPECT_EQ(reader.release(), LeaseState::released);
  EXPECT_EQ(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"), "0");
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
}

// A user's own transaction takes the locks that guard our rows in the other order. Expected: the server
// finds the deadlock, ours gives way, and the error names the locks.
class Deadlock : public Session {
 protected:
  Deadlock() : Session({"deadlock_timeout=5s"}) {}

  // Those of the kind that guards rows: the two halves of the number.
  static std::string guard(std::int64_t number) {
    return "SELECT pg_advisory_xact_lock(interlock.high(" + std::to_string(number) +
           "), interlock.low(" + std::to_string(number) + "))";
  }
};

// Row 0.5.
TEST_F(Deadlock, ADeadlockIsToldAsOne) {
  const MultiLock both(connect(url("timeout=60s")), {exclusive("one"), exclusive("two")},
                       {.retry = {.attempts = 1}});
  { auto lease = both.acquire(); }
  const auto [first, last] =
      std::minmax({postgres::id_of("interlock:", "one"), postgres::id_of("interlock:", "two")});
  EXPECT_EQ(sql("SET deadlock_timeout = '10min'"), "");
  EXPECT_EQ(sql("BEGIN"), "");
  EXPECT_EQ(sql(guard(last)), "");
  auto ours = std::async(std::launch::async, [&both] {
    try {
      static_cast<void>(both.acquire());
      return std::string("it was granted");
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
      return error.message();
    }
  });
  servers::PostgresConsole observer(server().url());
  EXPECT_TRUE(eventually([&] {
    return observer("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") ==
           "1";
  }));
  EXPECT_EQ(sql(guard(first)), "");
  EXPECT_EQ(sql("COMMIT"), "");
  const auto said = ours.get();
  EXPECT_NE(said.find("'one', 'two'"), std::string::npos) << said;
  EXPECT_TRUE(both.acquire()) << "nothing is left behind";
}

// Another client can't know when this session ends. Expected: it may not adopt the lease.
TEST_F(Session, ATokenStaysWithItsClient) {
  auto lease = Mutex(connect(url()), "r", kPatient).acquire();
  try {
    static_cast<void>(connect(url()).adopt(lease.token()));
    ADD_FAILURE() << "it was adopted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unsupported) << error.what();
  }
  EXPECT_EQ(lease.release(), LeaseState::released);
}

// Two thousand wait in one process. Expected: they share a handful of connections, and all get it.
TEST_F(Session, ThousandsOfWaitersShareAFewConnections) {
  for (const auto& where : {url(), lease_url()}) {
    const int before = sessions();
    const auto client = connect(where);
    auto lease = Mutex(client, "r", kPatient).acquire();
    std::atomic<int> served = 0;
    const Mutex mutex(client, "r", kPatient);
    for (int i = 0; i < 2000; ++i) {
      mutex.acquire(Wait::forever(), [&](const Attempt& attempt) {
        if (attempt) ++served;
      });
    }
    EXPECT_TRUE(eventually([&] { return waiters("r", where) == 2000; }));
    EXPECT_LE(sessions() - before, 4);
    lease.release();
    EXPECT_TRUE(eventually([&] { return served == 2000; })) << served;
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
