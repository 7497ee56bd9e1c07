// A server that settings name. Rows 3.4, 3.5 and 4.1.
#include "interlock/config.hpp"
#include "redis/redis_test.hpp"
#include "surroundings.hpp"

namespace interlock::redis_tests {
namespace {

class SettingsTest : public RedisTest {
 protected:
  SettingsTest() {
    EXPECT_EQ(console()("ACL SETUSER default resetpass >geheim"), "OK");
    EXPECT_EQ(console()("AUTH geheim"), "OK");
  }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server().port());
  }
  testing_support::Surroundings around_;
};

TEST_F(SettingsTest, TheVariablesOfATableStoreLeadToIt) {  // row 4.1
  around_.set("LOCKING_BACKEND", "redis");
  around_.set("REDIS_HOST", "127.0.0.1");
  around_.set("REDIS_PORT", std::to_string(server().port()));
  around_.set("REDIS_DB", "2");
  around_.set("REDIS_PASSWORD", "geheim");
  for (const auto* backend : {"", "redis"}) {
    Locking locking("worker-1", backend);
    ASSERT_TRUE(locking.acquire({"file_A"}));
    EXPECT_EQ(console()("SELECT 2"), "OK");
    EXPECT_EQ(console()("EXISTS interlock:file_A"), "1");
    EXPECT_EQ(console()("SELECT 0"), "OK");
    EXPECT_EQ(console()("EXISTS interlock:file_A"), "0");
    EXPECT_TRUE(locking.release({"file_A"}));
  }
}

TEST_F(SettingsTest, ArgumentsLeadToItBeforeTheVariables) {  // row 4.1
  around_.set("LOCKING_BACKEND", "memory");
  around_.set("REDIS_HOST", "no.such.host.invalid");
  around_.set("REDIS_PORT", "1");
  around_.set("REDIS_DB", "7");
  around_.set("REDIS_PASSWORD", "falsch");
  EXPECT_EQ(console()("CONFIG SET requirepass a/b@c:d%"), "OK");
  const LockingStore all{.backend = "redis",
                         .host = "127.0.0.1",
                         .port = server().port(),
                         .db = 2,
                         .password = "a/b@c:d%"};
  {
    Locking locking("worker-1", all);
    ASSERT_TRUE(locking.acquire({"file_A"}));
    EXPECT_EQ(console()("SELECT 2"), "OK");
    EXPECT_EQ(console()("EXISTS interlock:file_A"), "1");
    EXPECT_EQ(locking.client().traits().where.find("a/b"), std::string::npos);
  }
  // What is not given comes from its variable; that the backend is redis goes without saying.
  around_.set("REDIS_HOST", "127.0.0.1");
  Locking locking("worker-1", {.port = server().port(), .password = "a/b@c:d%"});
  ASSERT_TRUE(locking.acquire({"file_B"}));
  EXPECT_EQ(console()("SELECT 7"), "OK");
  EXPECT_EQ(console()("EXISTS interlock:file_B"), "1");
}

TEST_F(SettingsTest, AFileLeadsToItAndAWrongPasswordIsNotUnreachable) {  // rows 3.4 and 3.5
  const auto file = [&](const std::string& password) {
    around_.write("interlock.json", R"({"url": "redis://:)" + password + "@" + address() +
                                        R"(", "onUnavailable": "memory"})");
  };
  file("geheim");
  const auto locks = connect(Config::load());
  EXPECT_EQ(locks.traits().name, "redis");
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
  file("falsch");
  try {
    (void)connect(Config::load());
    FAIL() << "a store that says no is not replaced";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_EQ(std::string(error.what()).find("falsch"), std::string::npos) << error.what();
  }
}

TEST_F(SettingsTest, AStoreThatFailsLaterIsNotReplaced) {  // row 3.4
  around_.write("interlock.json", R"({"url": "redis://:geheim@)" + address() +
                                      R"(?timeout=500ms", "onUnavailable": "memory"})");
  const auto config = Config::load();
  const auto locks = connect(config);
  server().stop();
  EXPECT_THROW((void)Mutex(locks, "r", {.retry = Retry::none()}).try_acquire(), Error);
  EXPECT_EQ(locks.traits().name, "redis");
  EXPECT_EQ(connect(config).traits().name, "memory") << "it is decided when connecting";
}

}  // namespace
}  // namespace interlock::redis_tests
