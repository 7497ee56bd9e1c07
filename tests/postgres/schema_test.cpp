// The first acquire makes the schema, reads do not, and nobody changes it over; PgBouncer is noticed.
#include <atomic>
#include <mutex>
#include <thread>

#include "backends/postgres/schema.hpp"
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
  static void expect_refused(const std::string& where, const std::string& expected) {
    expect_error({expected},
                 [&] { (void)Mutex(connect(where), "r", {.retry = {.attempts = 1}}).acquire(); });
  }
  template <class Use>
  static void expect_error(const std::vector<std::string>& all_of, Use use) {
    try {
      use();
      ADD_FAILURE() << "it worked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      for (const auto& expected : all_of)
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  /// An acquire and a read, in both modes.
  void expect_all_refused(const std::vector<std::string>& all_of) {
    for (const auto& where : {url(), lease_url()}) {
      SCOPED_TRACE(where);
      expect_error(all_of, [&] {
        (void)Mutex(connect(where), "other", {.retry = {.attempts = 1}}).acquire();
      });
      expect_error(all_of, [&] { (void)connect(where).inspect({.resources = {"r"}}); });
      expect_error(all_of, [&] { (void)connect(where).inspect(); });
    }
  }
  /// Every function, the comment and the rows.
  std::string everything() {
    return sql("SELECT md5(string_agg(oid || prosrc, ',' ORDER BY oid)) FROM pg_proc WHERE "
               "pronamespace = 'interlock'::regnamespace") +
           sql("SELECT obj_description('interlock'::regnamespace, 'pg_namespace')") +
           sql("SELECT * FROM interlock.leases UNION ALL SELECT * FROM interlock.locks");
  }
  bool there_is_a_schema() { return sql("SELECT to_regnamespace('interlock')") != ""; }
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
  expect_refused(server().url("guest"), "GRANT it: docs/postgres.md");
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

// Expected: without a schema, nothing is held. A look changes nothing, whatever the role may do.
TEST_F(Schema, AReadMakesNone) {
  const servers::PgBouncer bouncer(server());
  for (const auto& where : {url(), lease_url(), bouncer.url() + "?mode=lease"}) {
    SCOPED_TRACE(where);
    const auto client = connect(where);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(client.inspect().resources.empty());
      EXPECT_TRUE(client.inspect({.resources = {"r"}}).resources.empty() ||
                  client.inspect({.resources = {"r"}}).resources.front().holders.empty());
    }
    EXPECT_FALSE(there_is_a_schema());
    // The same client makes it, and sees what others have made.
    auto lease = Mutex(client, "r").acquire();
    EXPECT_TRUE(there_is_a_schema());
    EXPECT_EQ(client.inspect().resources.size(), 1U);
    EXPECT_EQ(holders("r", where), 1U);
    lease.release();
    sql("DROP SCHEMA interlock CASCADE");
  }
  for (const std::string mode : {"advisory", "lease"}) {
    EXPECT_EQ(servers::run({INTERLOCK_BIN, "--url", url("mode=" + mode), "list"},
                           server().directory() / "list"),
              0);
    EXPECT_NE(servers::run({INTERLOCK_BIN, "--url", url("mode=" + mode), "who", "r"},
                           server().directory() / "who"),
              69);
    (void)connect(Config::load({.url = url("mode=" + mode)}));
    EXPECT_FALSE(there_is_a_schema());
  }
}

// A release that goes on in the background comes after an administrator has dropped the schema. Expected: not held.
TEST_F(Schema, OnlyAnAcquireMakesIt) {
  for (const auto& where : {url(), lease_url()}) {
    SCOPED_TRACE(where);
    auto lease = Mutex(connect(where), "r", {.ttl = 600s, .renew = false}).acquire();
    sql("DROP SCHEMA interlock CASCADE");
    sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE "
        "'interlock%'");
    EXPECT_EQ(lease.release(), LeaseState::lost);
    EXPECT_FALSE(there_is_a_schema());
  }
}

TEST_F(Schema, AReaderSeesWhatOthersHaveMadeSinceItLooked) {
  const auto reader = connect(lease_url());
  EXPECT_TRUE(reader.inspect().resources.empty());
  const auto lease = Mutex(connect(lease_url()), "r").acquire();
  EXPECT_EQ(reader.inspect().resources.size(), 1U);
}

// Looks and acquires that come at once share a connection. Expected: an acquire is not told that there is nothing.
TEST_F(Schema, AnAcquireThatComesWithReadsMakesIt) {
  for (int round = 0; round < 5; ++round) {
    for (const auto& where : {url(), lease_url()}) {
      sql("DROP SCHEMA IF EXISTS interlock CASCADE");
      const auto client = connect(where);
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
          try {
            if (i % 2 == 0) {
              (void)client.inspect();
            } else {
              EXPECT_TRUE(Mutex(client, "r" + std::to_string(i)).try_acquire());
            }
          } catch (const Error& error) {
            ADD_FAILURE() << error.what();
          }
        });
      }
      for (auto& thread : threads) thread.join();
    }
  }
}

// Programs of the older version would be locked out, and lose their leases. Expected: refused, the schema and its locks
// are as they were, and the administrator's command changes it over.
TEST_F(Schema, AnOlderSchemaIsRefusedAndLeftAsItIs) {
  const auto held = Mutex(connect(lease_url()), "r", {.ttl = 600s}).acquire();
  const auto now = std::to_string(postgres::kSchemaVersion);
  sql("DROP FUNCTION interlock.lock_title; COMMENT ON SCHEMA interlock IS 'Interlock 7'");
  const auto before = everything();
  expect_all_refused({"version 7", "version " + now, "Nothing was changed",
                      "interlock schema --url postgres:// | psql -v ON_ERROR_STOP=1"});
  EXPECT_EQ(everything(), before);
  ASSERT_EQ(servers::PostgresConsole(url())(postgres::schema_script()), "");
  EXPECT_EQ(holders("r", lease_url()), 1U);
  EXPECT_TRUE(Mutex(connect(url()), "other").try_acquire());
}

// Restored without comments, for example.
TEST_F(Schema, ASchemaWithoutAVersionIsRefusedAndLeftAsItIs) {
  { auto made = Mutex(connect(url()), "r").acquire(); }
  sql("COMMENT ON SCHEMA interlock IS NULL");
  const auto before = everything();
  expect_all_refused({"does not say its version", "Nothing was changed", "interlock schema"});
  EXPECT_EQ(everything(), before);
  ASSERT_EQ(servers::PostgresConsole(url())(postgres::schema_script()), "");
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
}

TEST_F(Schema, ANewerSchemaIsRefusedAndLeftAsItIs) {
  { auto made = Mutex(connect(url()), "r").acquire(); }
  sql("COMMENT ON SCHEMA interlock IS 'Interlock 999'");
  const auto before = everything();
  expect_all_refused({"version 999", "version " + std::to_string(postgres::kSchemaVersion),
                      "Nothing was changed", "update Interlock"});
  // By the administrator's command of the older program, too.
  EXPECT_EQ(servers::PostgresConsole(url())(postgres::schema_script()), "(IL006)");
  EXPECT_EQ(everything(), before);
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
