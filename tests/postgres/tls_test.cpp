// Over TLS, with a server that proves who it is, or does not.
#include "postgres/postgres_test.hpp"
#include "servers/certificates.hpp"

namespace interlock::postgres_tests {
namespace {

/// Those of the server, which has to own them.
class ServedCertificates : public servers::Certificates {
 public:
  explicit ServedCertificates(const std::string& names) : Certificates(names) {
    for (const auto* name : {"", "server.key", "server.crt"})
      servers::PostgresUser::own(file(name));
  }
};

class Tls : private ServedCertificates, public PostgresTest {
 protected:
  explicit Tls(const std::string& names = kThisMachine)
      : ServedCertificates(names),
        PostgresTest({"ssl=on", "ssl_cert_file=" + file("server.crt"),
                      "ssl_key_file=" + file("server.key")}) {}

  [[nodiscard]] std::string tls_url(const std::string& authority,
                                    const std::string& more = "") const {
    return url("sslmode=verify-full&sslrootcert=" + authority + more);
  }
  [[nodiscard]] std::string verified(const std::string& more = "") const {
    return tls_url(file("ca.crt"), more);
  }
};

TEST_F(Tls, LocksAreTakenWaitedForAndGivenBack) {
  for (const auto& where : {verified(), verified("&mode=lease")}) {
    SCOPED_TRACE(where);
    const auto one = connect(where);
    const auto two = connect(where);
    auto lease = Mutex(one, "r", kPatient).acquire();
    EXPECT_EQ(sql("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE "
                  "application_name LIKE 'interlock%'"),
              "t");
    auto waiting = queue_up(Mutex(two, "r", kPatient), where);
    EXPECT_TRUE(lease.extend(600s));
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_EQ(waiting.lease().release(), LeaseState::released);
  }
}

// Answers of many records, requests of many names.
TEST_F(Tls, LongAnswersAndRequestsPass) {
  const auto locks = connect(verified());
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i)
    names.push_back("a name that is rather long, and has a number " + std::to_string(i));
  const auto all = MultiLock(locks, names, kPatient).acquire();
  EXPECT_EQ(locks.inspect().resources.size(), names.size());
  EXPECT_EQ(connect(verified()).inspect({.resources = names}).resources.size(), names.size());
}

/// Leads to this machine, and no name says so.
std::string elsewhere(int port) {
  return "postgres://postgres@127.1:" + std::to_string(port) + "/postgres";
}

TEST_F(Tls, IsUsedWithoutAWordOnOtherMachines) {
  for (const std::string mode : {"advisory", "lease"}) {
    const auto where = elsewhere(server().port()) + "?mode=" + mode;
    const auto lease = Mutex(connect(where), "r", kPatient).acquire();
    EXPECT_EQ(sql("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE "
                  "application_name LIKE 'interlock%'"),
              "t");
  }
}

class WithoutTls : public PostgresTest {};

// The password must not go there.
TEST_F(WithoutTls, AServerOnAnotherMachineIsRefused) {
  for (const std::string mode : {"advisory", "lease"}) {
    const auto where = elsewhere(server().port()) + "?mode=" + mode;
    try {
      static_cast<void>(Mutex(connect(where), "r").acquire());
      ADD_FAILURE() << "granted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      for (const auto* way_out : {"no TLS", "sslmode=verify-full", "sslmode=disable"})
        EXPECT_NE(std::string(error.what()).find(way_out), std::string::npos) << error.what();
    }
    EXPECT_TRUE(Mutex(connect(where + "&sslmode=disable"), "r").acquire());
  }
}

TEST_F(Tls, AServerThatNobodyVouchesForIsRefused) {
  const servers::Certificates others;
  try {
    static_cast<void>(Mutex(connect(tls_url(others.file("ca.crt"))), "r").acquire());
    FAIL() << "granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("certificate"), std::string::npos) << error.what();
  }
}

class TlsOfAnotherHost : public Tls {
 protected:
  TlsOfAnotherHost() : Tls("DNS:elsewhere.example,IP:192.0.2.1") {}
};

// The authority vouches for it, under another name.
TEST_F(TlsOfAnotherHost, IsRefused) {
  for (const std::string more : {"", "&mode=lease"}) {
    try {
      static_cast<void>(Mutex(connect(verified(more)), "r").acquire());
      FAIL() << "granted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      EXPECT_NE(std::string(error.what()).find("certificate"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
