// Without a word about TLS: which servers have to have it.
#include "backends/postgres/settings.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "surroundings.hpp"

namespace interlock::postgres_tests {
namespace {

class TlsByDefault : public testing::Test {
 protected:
  /// Empty: libpq decides.
  static std::string mode(const postgres::Link::Keywords& keywords) {
    std::string mode;
    for (const auto& [name, value] : keywords) {
      if (name == "sslmode") mode = value;
    }
    return mode;
  }
  static std::string of(const std::string& url) {
    return mode(postgres::Settings::from(Url::parse("postgres://" + url)).keywords);
  }

  testing_support::Surroundings around_;
};

TEST_F(TlsByDefault, IsForServersOnOtherMachines) {
  for (const auto* here : {"localhost/db", "127.0.0.1:5433/db", "[::1]/db",
                           "localhost,127.0.0.2/db", "/db", "/db?host=/run/postgresql"})
    EXPECT_EQ(of(here), "") << here;
  for (const auto* there : {"db.example/db", "127.evil.example/db", "127.1/db", "[fe80::1]/db",
                            "10.0.0.1/db", "localhost,db.example/db", "/db?host=db.example"})
    EXPECT_EQ(of(there), "require") << there;
}

TEST_F(TlsByDefault, IsNotForThoseWhoSayWhatTheyWant) {
  for (const std::string said :
       {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}) {
    EXPECT_EQ(of("db.example/db?sslmode=" + said), said);
    EXPECT_EQ(of("localhost/db?sslmode=" + said), said);
  }
  around_.set("PGSSLMODE", "prefer");
  EXPECT_EQ(of("db.example/db"), "") << "libpq reads it";
}

// What the environment names is as far away as what the URL names.
TEST_F(TlsByDefault, CountsTheHostsOfTheEnvironment) {
  around_.set("PGHOST", "db.example");
  EXPECT_EQ(of("/db"), "require");
  EXPECT_EQ(of("localhost/db"), "");
  around_.set("PGHOST", "/run/postgresql");
  EXPECT_EQ(of("/db"), "");
  around_.set("PGHOSTADDR", "10.0.0.1");
  EXPECT_EQ(of("localhost/db"), "require");
  around_.set("PGHOSTADDR", "127.0.0.1");
  EXPECT_EQ(of("db.example/db"), "") << "the name is only what its certificate has to say";
}

TEST_F(TlsByDefault, LeavesAServiceWhatItSays) {
  const auto file =
      around_.write("services",
                    "[sure]\nhost=db.example\nsslmode=verify-full\n[plain]\nhost=db.example\n"
                    "sslmode=disable\n[silent]\nhost=db.example\n[here]\nhost=localhost\n");
  around_.set("PGSERVICEFILE", file);
  EXPECT_EQ(of("/db?service=sure"), "") << "require would be less";
  EXPECT_EQ(of("/db?service=plain"), "");
  EXPECT_EQ(of("/db?service=silent"), "require");
  EXPECT_EQ(of("/db?service=here"), "");
  around_.set("PGSERVICE", "sure");
  EXPECT_EQ(of("other.example/db"), "");
  around_.set("PGSERVICE", "silent");
  EXPECT_EQ(of("/db"), "require");
}

// The pooler is here, and the server is not.
TEST_F(TlsByDefault, CountsTheHostToListenAtByItself) {
  auto settings = postgres::Settings::from(
      Url::parse("postgres://localhost/db?mode=lease&listen=db.example:5432"));
  EXPECT_EQ(mode(settings.keywords), "");
  EXPECT_EQ(mode(settings.listen_keywords), "require");
  settings = postgres::Settings::from(Url::parse("postgres://db.example/db?mode=lease"));
  EXPECT_EQ(mode(settings.listen_keywords), "require");
}

}  // namespace
}  // namespace interlock::postgres_tests
