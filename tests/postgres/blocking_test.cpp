// Advisory mode: one waiter of each client blocks in a second session, until it is its turn.
#include <signal.h>

#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Blocking : public PostgresTest {
 protected:
  [[nodiscard]] std::string blocking() const { return url("wait=block"); }
  /// How many wait inside of the server.
  [[nodiscard]] int blocked() {
    return std::stoi(
        sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'interlock%' AND "
            "wait_event_type = 'Lock' AND wait_event = 'advisory'"));
  }
  [[nodiscard]] int advisory_locks(const std::string& name) {
    return std::stoi(
        sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND "
            "(classid::bigint << 32) | objid::bigint = (SELECT "
            "('x' || encode(substr(sha256('interlock:" +
            name + "'), 1, 8), 'hex'))::bit(64)::bigint)"));
  }
};

TEST_F(Blocking, AWaiterBlocksInTheServerAndIsNext) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto second = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  auto third = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 2; }));
  const auto fence = first.fence();
  first.release();
  auto next = second.lease();
  EXPECT_GT(next.fence(), fence);
  EXPECT_FALSE(third.over());
  EXPECT_TRUE(still_held(next));
  EXPECT_EQ(next.release(), LeaseState::released);
  EXPECT_GT(third.lease().fence(), next.fence());
  EXPECT_TRUE(eventually([&] { return advisory_locks("r") == 0; }));
}

// Its client hears that it was granted when that is over. Expected: it does not believe it, and asks again.
TEST_F(Blocking, TheTimeOfALeaseBeginsWhenItWasGranted) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto child = holder(blocking(), "r", "3s");
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  child.signal(SIGSTOP);
  first.release();
  EXPECT_TRUE(eventually([&] { return holders("r", url()) == 1; }));
  const auto granted = look("r", url()).holders.front().fence;
  EXPECT_TRUE(eventually([&] { return holders("r", url()) == 0; }));
  child.signal(SIGCONT);
  EXPECT_GT(std::stoull(child.after("held ")), granted.value);
  EXPECT_EQ(child.ask("state", "state "), "held");
}

// Long waits are told of: a statement that goes on keeps the whole database from tidying up.
TEST_F(Blocking, WhoeverWaitsForLongBlocksNoMore) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto waiting = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  EXPECT_TRUE(eventually([&] { return blocked() == 0; }));
  EXPECT_FALSE(waiting.over());
  EXPECT_EQ(waiters("r", url()), 1U);
  first.release();
  EXPECT_TRUE(waiting.lease());
}

TEST_F(Blocking, WhoeverGivesUpLeavesTheLineAndNothingBehind) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto second = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  auto third = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 2; }));
  second.cancel();
  EXPECT_FALSE(second.attempt());
  EXPECT_TRUE(eventually([&] { return waiters("r", url()) == 1; }));
  first.release();
  auto next = third.lease();
  EXPECT_EQ(next.release(), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return advisory_locks("r") == 0; }));
}

TEST_F(Blocking, AKilledWaiterHoldsNobodyUp) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto child = holder(blocking(), "r");
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  auto third = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  child.kill();
  first.release();
  EXPECT_TRUE(third.lease());
}

// It is granted while it can't hear of it. Expected: it costs its TTL, and it knows when it wakes.
TEST_F(Blocking, AStoppedWaiterIsEndedWhenItsTimeIsOver) {
  auto first = Mutex(connect(blocking()), "r", kPatient).acquire();
  auto child = holder(blocking(), "r", "1s");
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  child.signal(SIGSTOP);
  first.release();
  auto next = Mutex(connect(blocking()), "r", kPatient).acquire();
  EXPECT_TRUE(next);
  child.signal(SIGCONT);
  EXPECT_EQ(holders("r", url()), 1U);
  EXPECT_EQ(next.release(), LeaseState::released);
  child.after("held ");  // it waits on
}

TEST_F(Blocking, ATerminatedSessionLosesWhatIsOnItAndNoMore) {
  const auto client = connect(blocking());
  auto there = Mutex(client, "there", kPatient).acquire();
  auto here = RwLock(client, "here", kPatient).read();
  EXPECT_NE(session_of("there"), session_of("here"));
  EXPECT_EQ(sql("SELECT pg_terminate_backend(" + session_of("there") + ")"), "t");
  EXPECT_TRUE(eventually([&] { return there.lost().stop_requested(); }));
  EXPECT_TRUE(still_held(here));
  EXPECT_TRUE(Mutex(client, "there", kPatient).acquire());
  EXPECT_EQ(there.release(), LeaseState::lost);
}

TEST_F(Blocking, AWaiterWhoseSessionEndsWaitsOn) {
  auto first = Mutex(connect(url()), "r", kPatient).acquire();
  auto waiting = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'");
  EXPECT_TRUE(eventually([&] { return blocked() == 0; }));
  first.release();
  EXPECT_TRUE(waiting.lease());
}

// Something else fails on the holder's session, which is cleaned up. Expected: the lock does not slip over to
// the one that blocks.
TEST_F(Blocking, AFailureElsewhereOnTheSessionCostsNoLock) {
  const auto locks = connect(url("wait=listen"));
  auto held = Mutex(locks, "r", kPatient).acquire();
  auto waiting = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  sql("CREATE FUNCTION interlock.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space left'; END $$;"
      "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON interlock.locks DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW WHEN (NEW.resource = 'interlock:other') EXECUTE FUNCTION "
      "interlock.full()");
  EXPECT_THROW(
      static_cast<void>(Mutex(locks, "other", {.ttl = 600s, .retry = Retry::none()}).try_acquire()),
      Error);
  EXPECT_TRUE(held.extend(600s));  // after the clean-up, on the same session
  EXPECT_FALSE(waiting.over());
  EXPECT_EQ(held.release(), LeaseState::released);
  EXPECT_TRUE(waiting.lease());
}

// Expected: a weaker lock is granted at once, whoever blocks; and those who block stay out.
TEST_F(Blocking, AHolderTakesLessWhileOthersBlock) {
  auto held = RwLock(connect(blocking()), "r", kPatient).write();
  auto waiting = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  EXPECT_TRUE(eventually([&] { return blocked() == 1; }));
  EXPECT_TRUE(held.downgrade());
  EXPECT_FALSE(waiting.over());
  held.release();
  EXPECT_TRUE(waiting.lease());
}

// One that holds and many that wait are killed together. Expected: the next one is not behind them.
TEST_F(Blocking, AKilledCrowdIsNotWaitedFor) {
  std::vector<Child> crowd;
  crowd.push_back(holder(blocking(), "r"));
  crowd.back().after("held ");
  for (int i = 0; i < 4; ++i) {
    crowd.push_back(holder(i % 2 == 0 ? blocking() : url(), "r"));
    EXPECT_TRUE(eventually([&] { return waiters("r", url()) == crowd.size() - 1; }));
  }
  auto waiting = queue_up(Mutex(connect(blocking()), "r", kPatient), url());
  for (auto& child : crowd) child.kill();
  EXPECT_TRUE(waiting.lease());
  EXPECT_TRUE(Mutex(connect(url()), "r", kPatient).acquire());
}

TEST_F(Blocking, ASecondSessionComesWhereLocksChangeHandsOftenAndGoes) {
  const auto quiet = connect(url());
  auto held = Mutex(quiet, "held", kPatient).acquire();
  EXPECT_EQ(sessions(), 1);
  {
    const Crowd crowd(url(), 3);
    EXPECT_TRUE(eventually([&] { return sessions() == 1 + 3 * 2; }));
  }
  EXPECT_TRUE(eventually([&] { return sessions() == 1; }));
}

TEST_F(Blocking, NoSecondSessionWhereItIsNotWanted) {
  const Crowd crowd(url("wait=listen"), 3);
  EXPECT_TRUE(eventually([&] { return sessions() == 3; }));
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(sessions(), 3);
}

class SmallServer : public PostgresTest {
 protected:
  SmallServer() : PostgresTest({"max_connections=14"}) {}
};

TEST_F(SmallServer, NoSecondSessionWhereHalfOfTheConnectionsAreTaken) {
  std::vector<std::unique_ptr<servers::PostgresConsole>> others;
  for (int i = 0; i < 7; ++i) {
    others.push_back(std::make_unique<servers::PostgresConsole>(server().url()));
    (void)(*others.back())("SELECT 1");
  }
  const Crowd crowd(url(), 2);
  EXPECT_TRUE(eventually([&] { return sessions() == 2; }));
  std::this_thread::sleep_for(1s);
  EXPECT_TRUE(eventually([&] { return sessions() == 2; }));  // one that is just refused counts, too
}

TEST_F(Blocking, WaitIsForAdvisoryMode) {
  EXPECT_THROW(static_cast<void>(connect(lease_url("wait=block"))), Error);
  EXPECT_THROW(static_cast<void>(connect(url("wait=never"))), Error);
}

}  // namespace
}  // namespace interlock::postgres_tests
