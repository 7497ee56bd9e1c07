// Who may, who may not, what others put there, and what others may rely on.
#include "etcd/etcd_test.hpp"
#include "interlock/etcd.hpp"

namespace interlock::etcd_tests {
namespace {

class Access : public EtcdTest<servers::EtcdServer> {};
class SecureAccess : public EtcdTest<servers::TlsEtcdServer> {
 protected:
  /// Acquires, and gives the error that it has to end with.
  static Error error_of(const std::string& url) {
    try {
      static_cast<void>(Mutex(connect(url), "r", {.retry = Retry::none()}).try_acquire());
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("p@ss"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos) << error.what();
      return error;
    }
    ADD_FAILURE() << "it was let in: " << url;
    return Error(Errc::invalid, "");
  }
};

// A write of our own, that etcd does only while the lease holds.
TEST_F(Access, AGuardLetsAWriteInOnlyWhileTheLeaseHolds) {
  const auto write = [&](const EtcdGuard& guard, const std::string& value) {
    return servers().ctl({"txn"}, guard.etcdctl() + "\n\nput data " + value + "\n\n\n");
  };
  auto lease = Mutex(connect(url()), "r \"quoted\" \\ name").acquire();
  const auto guard = etcd_guard(lease);
  EXPECT_TRUE(write(guard, "first").starts_with("SUCCESS"));
  EXPECT_TRUE(lease.extend(40s));
  EXPECT_TRUE(write(guard, "second").starts_with("SUCCESS"));
  connect(url()).evict(lease.resource(), lease.owner());
  const auto next = Mutex(connect(url()), lease.resource()).acquire();
  EXPECT_TRUE(write(guard, "late").starts_with("FAILURE"));
  EXPECT_TRUE(write(etcd_guard(next), "third").starts_with("SUCCESS"));
  EXPECT_EQ(servers().ctl({"get", "--print-value-only", "data"}), "third\n");
  EXPECT_THROW(etcd_guard(next, "other"), Error);
}

TEST_F(Access, SomethingElseUnderOurKeysIsAnErrorThatNamesTheKey) {
  const auto locks = connect(url());
  servers().ctl({"put", "interlock/r\th0123456789abcdef0123456789abcdef", "something else"});
  try {
    static_cast<void>(Mutex(locks, "r").try_acquire());
    FAIL() << "who knows what that is?";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_NE(std::string(error.what()).find("interlock/r"), std::string::npos) << error.what();
  }
}

TEST_F(Access, OtherKeysUnderThePrefixAreLeftAlone) {
  servers().ctl({"put", "interlock/r", "mine"});
  servers().ctl({"put", "interlock/r/settings", "mine, too"});
  auto lease = Mutex(connect(url()), "r").acquire();
  EXPECT_EQ(connect(url()).inspect().resources.size(), 1U);
  lease.release();
  EXPECT_EQ(servers().ctl({"get", "--print-value-only", "interlock/r"}), "mine\n");
}

TEST_F(Access, PrefixesKeepApart) {
  const auto one = Mutex(connect(url() + "?prefix=one/"), "r").acquire();
  const auto two = Mutex(connect(url() + "?prefix=two/"), "r").try_acquire();
  EXPECT_TRUE(two);
}

TEST_F(Access, AUrlThatMakesNoSenseIsRefused) {
  for (const auto* url :
       {"etcd://", "etcd://:2379", "etcd://h:port", "etcd://h/path", "etcd://h?x=1",
        "etcd://h?ca=/etc/hosts", "etcd://user@h", "etcd://h?timeout=1ms",
        "etcds://h?ca=/nonexistent", "etcds://h?cert=/etc/hosts"}) {
    try {
      static_cast<void>(connect(url));
      ADD_FAILURE() << url << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::invalid) << error.what();
    }
  }
}

TEST_F(SecureAccess, TheLeastRightsAreEnough) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r").acquire();
  auto waiting = queue_up(Mutex(connect(url()), "r"));
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

TEST_F(SecureAccess, AWrongPasswordIsRefused) {
  EXPECT_EQ(error_of(servers().url("locks:hunter2@")).errc(), Errc::refused);
}

// Tokens and passwords would be in it, and owners.
TEST_F(SecureAccess, GrpcTracesShowNothing) {
  const TemporaryDirectory directory;
  const auto output = (directory.path() / "output").string();
  EXPECT_EQ(servers::run({"env", "GRPC_VERBOSITY=DEBUG", "GRPC_TRACE=all", "INTERLOCK_URL=" + url(),
                          INTERLOCK_BIN, "run", "r", "--", "echo", "it has run"},
                         output),
            0);
  std::ifstream file(output);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("it has run"), std::string::npos) << text;
  for (const auto* secret : {"p@ss", "token", "authenticate", "Authenticate", "interlock/r"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << " is in " << text.substr(0, 2000);
}

TEST_F(SecureAccess, NobodyIsRefused) {
  const auto error = error_of(servers().url(""));
  EXPECT_EQ(error.errc(), Errc::refused) << error.what();
}

TEST_F(SecureAccess, KeysOutsideOfItsRightsAreRefused) {
  const auto error = error_of(url() + "&prefix=elsewhere/");
  EXPECT_EQ(error.errc(), Errc::refused);
  EXPECT_NE(std::string(error.what()).find("prefix"), std::string::npos) << error.what();
}

TEST_F(SecureAccess, AServerThatIsNotTheOneIsNotTalkedTo) {
  const servers::Certificates others;
  const auto& own = servers().certificates();
  const auto error = error_of("etcds://locks:p%40ss%2Fword@" + servers().server().address() +
                              "?timeout=2s&ca=" + others.file("ca.crt") +
                              "&cert=" + own.file("client.crt") + "&key=" + own.file("client.key"));
  EXPECT_EQ(error.errc(), Errc::unreachable);
}

TEST_F(SecureAccess, AServerWithAnotherNameIsNotTalkedTo) {
  EXPECT_TRUE(Mutex(connect(url() + "&server-name=localhost"), "r").try_acquire());
  const auto error = error_of(url() + "&timeout=2s&server-name=elsewhere.example");
  EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
}

// etcd forgets its tokens when it is restarted.
TEST_F(SecureAccess, ANewTokenIsFetchedWhenTheOldOneIsNoGood) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r", patient()).acquire();
  servers().server().restart();
  EXPECT_TRUE(still_held(lease));
  EXPECT_EQ(lease.release(), LeaseState::released);
}

TEST_F(SecureAccess, ARequestMayStillBeUnderWayWhenTheProcessEnds) {
  EXPECT_EQ(Child("laster", {url()}).wait(), 0);
}

}  // namespace
}  // namespace interlock::etcd_tests
