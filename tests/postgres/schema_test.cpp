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
