// The schema is made on first use, by whoever comes first; PgBouncer is noticed.
#include <atomic>
#include <mutex>
#include <thread>

#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Warnings final : public Observer {
 public:
  void on(const Observation& observation) noexcept override {
    if (observation.event != Event::warned) return;
    const std::lock_guard lock(mutex_);
    text_ += observation.error->message() + "\n";
  }
  [[nodiscard]] std::string all() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class Schema : public PostgresTest {
 protected:
  template <class Expected>
  void expect_refused(const std::string& where, Expected expected) {
    try {
      static_cast<void>(Mutex(connect(where), "r", {.retry = {.attempts = 1}}).acquire());
      ADD_FAILURE() << "it worked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
};

TEST_F(Schema, TenClientsMakeItAtOnce) {
  for (const std::string mode : {"advisory", "lease"}) {
    sql("DROP SCHEMA IF EXISTS interlock CASCADE");
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    for (int i = 0; i < 10; ++i) {
      threads.emplace_back([&, i] {
        try {
          auto lease = Mutex(connect(url("mode=" + mode)), "r" + std::to_string(i)).acquire();
          ++good;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(good, 10);
  }
}

TEST_F(Schema, WithoutRightsThereIsOneClearError) {
  sql("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
  expect_refused(server().url("guest"), "interlock schema");
  { auto made = Mutex(connect(url()), "r").acquire(); }
  expect_refused(server().url("guest"), "interlock schema");
  // The least that it takes.
  sql("GRANT USAGE ON SCHEMA interlock TO guest;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interlock TO guest;"
      "GRANT USAGE ON ALL SEQUENCES IN SCHEMA interlock TO guest");
  EXPECT_TRUE(Mutex(connect(server().url("guest")), "r").acquire());
  EXPECT_TRUE(Mutex(connect(server().url("guest") + "?mode=lease"), "r").acquire());
}

// Expected: fences go on rising when the schema is dropped and made anew, or the database restored without it.
TEST_F(Schema, FencesRiseOverASchemaThatIsMadeAnew) {
  const auto before = Mutex(connect(url()), "r").acquire().fence();
  sql("DROP SCHEMA interlock CASCADE");
  EXPECT_GT(Mutex(connect(url()), "r").acquire().fence(), before);
}

// Expected: rows of holders that were killed go, also if nobody asks for their names any more.
TEST_F(Schema, WhatEndedLongAgoIsClearedAway) {
  { auto made = Mutex(connect(url()), "r").acquire(); }
  for (const std::string table : {"locks", "leases"}) {
    sql("INSERT INTO interlock." + table +
        " SELECT n, 0, 0, n, gen_random_uuid(), 'r' || n, 'e', 1, 1, false, now(), now() + "
        "CASE WHEN n = 1 THEN interval '1 hour' ELSE interval '-1 hour' END, NULL, 7, '', '', '', "
        "1, "
        "false, 'e' FROM generate_series(1, 5) n");
  }
  { auto any = Mutex(connect(url()), "r").acquire(); }
  { auto any = Mutex(connect(lease_url()), "r").acquire(); }
  EXPECT_EQ(sql("SELECT count(*) FROM interlock.locks"), "1");
  EXPECT_EQ(sql("SELECT count(*) FROM interlock.leases"), "1");
}

// Expected: settings of the role that would end our session or forget our grants don't count.
TEST_F(Schema, SettingsOfTheRoleAreOverruled) {
  sql("ALTER ROLE postgres SET idle_session_timeout = '1s'");
  sql("ALTER ROLE postgres SET synchronous_commit = off");
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  std::this_thread::sleep_for(2s);
  EXPECT_TRUE(lease);
  servers::PostgresConsole fresh(server().url());
  EXPECT_EQ(fresh("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'interlock%'"),
            "1");
  sql("ALTER ROLE postgres RESET ALL");
}

TEST_F(Schema, ADatabaseNeedNotBeUtf8) {
  sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  auto there = server().url();
  there.replace(there.rfind("/") + 1, std::string::npos, "latin");
  EXPECT_TRUE(Mutex(connect(there), "na\u00efve").acquire());
  EXPECT_TRUE(Mutex(connect(there + "?mode=lease"), "na\u00efve").acquire());
}

TEST_F(Schema, AReadOnlyServerIsRefused) {
  sql("ALTER SYSTEM SET default_transaction_read_only = on");
  sql("SELECT pg_reload_conf()");
  for (const std::string mode : {"advisory", "lease"}) {
    try {
      static_cast<void>(
          Mutex(connect(url("mode=" + mode)), "r", {.retry = {.attempts = 1}}).acquire());
      ADD_FAILURE() << "it worked";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("read-only"), std::string::npos) << error.what();
    }
  }
}

TEST_F(Schema, AnotherIsolationIsRefusedOrSetRight) {
  sql("ALTER SYSTEM SET default_transaction_isolation = 'serializable'");
  sql("SELECT pg_reload_conf()");
  EXPECT_TRUE(Mutex(connect(url()), "r").acquire());
  EXPECT_TRUE(Mutex(connect(lease_url()), "r").acquire());
  const servers::PgBouncer bouncer(server());
  expect_refused(bouncer.url() + "?mode=lease", "read committed");
}

TEST_F(Schema, ANewerSchemaIsRefused) {
  { auto made = Mutex(connect(url()), "r").acquire(); }
  sql("COMMENT ON SCHEMA interlock IS 'Interlock 999'");
  expect_refused(url(), "update Interlock");
}

TEST_F(Schema, AWrongPasswordIsRefusedAndNeverShown) {
  sql("CREATE ROLE guest LOGIN PASSWORD 'right'");
  {
    std::ofstream file(server().data() / "pg_hba.conf");
    file << "host all guest 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
  }
  sql("SELECT pg_reload_conf()");
  const auto address = "@" + server().address() + "/postgres";
  ASSERT_TRUE(eventually([&] {
    servers::PostgresConsole probe("postgres://guest:wrong" + address);
    return probe("SELECT 1") == "(nothing)";
  }));
  try {
    static_cast<void>(Mutex(connect("postgres://guest:s3cret" + address), "r").acquire());
    ADD_FAILURE() << "it worked";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
  }
}

// Sessions come and go there with every transaction. Expected: advisory mode is refused, and the error
// names the way out; lease mode works, and says that it has to ask instead of being told.
TEST_F(Schema, PgBouncerIsNoticed) {
  const servers::PgBouncer bouncer(server());
  expect_refused(bouncer.url(), "mode=lease");
  const auto heard = std::make_shared<Warnings>();
  const Client client(stores::open(bouncer.url() + "?mode=lease"), {.observer = heard});
  auto lease = Mutex(client, "r").acquire();
  EXPECT_EQ(heard->all(), "");
  auto waiting = queue_up(Mutex(client, "r"), lease_url());
  EXPECT_TRUE(eventually([&] { return heard->all().find("listen=") != std::string::npos; }))
      << heard->all();
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

// Nobody is where it should be told. Expected: whoever waits asks instead, and knows that it is taken.
TEST_F(Schema, WhoeverCantBeToldKnowsThatItIsTaken) {
  const auto lease = Mutex(connect(lease_url()), "r").acquire();
  const Mutex mutex(connect(lease_url("listen=127.0.0.1:1")), "r");
  for (int i = 0; i < 12; ++i) {
    const auto attempt = mutex.try_acquire_for(400ms);
    EXPECT_EQ(attempt.outcome(), Outcome::timed_out);
  }
}

// The same, for one who says that it keeps sessions, which it does not. Expected: found out at the
// first transaction that lands on another session.
TEST_F(Schema, APoolerThatOnlySaysThatItKeepsSessionsIsFoundOut) {
  const servers::PgBouncer bouncer(server());
  const Mutex mutex(connect(bouncer.url() + "?pooler=session"), "r", {.retry = {.attempts = 1}});
  try {
    for (int i = 0; i < 2; ++i) {
      auto lease = mutex.acquire();
      // Ours is given to another one meanwhile.
      servers::PostgresConsole other(bouncer.url());
      ASSERT_EQ(other("BEGIN"), "");
      ASSERT_NE(other("SELECT pg_backend_pid()"), "(nothing)");
      EXPECT_EQ(lease.release(), LeaseState::released);
    }
    ADD_FAILURE() << "nobody noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("pooler"), std::string::npos) << error.what();
  }
}

TEST_F(Schema, APoolerThatKeepsSessionsIsFine) {
  const servers::PgBouncer bouncer(server(), "session");
  expect_refused(bouncer.url(), "pooler=session");
  auto lease = Mutex(connect(bouncer.url() + "?pooler=session"), "r").acquire();
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire());
}

}  // namespace
}  // namespace interlock::postgres_tests
