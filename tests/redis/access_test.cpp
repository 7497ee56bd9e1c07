// Rights, passwords and keys that are not ours. The least rights that docs/redis.md names are
// exactly the ones that these tests find.
#include <atomic>

#include "redis/everything.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

class Refusals final : public Observer {
 public:
  void on(const Observation& observation) noexcept override {
    if (observation.event == Event::cleanup_failed) ++count;
  }
  std::atomic<int> count = 0;
};

class AccessTest : public RedisTest {
 protected:
  /// A user with the least rights, but without this one; with locks of its own, as whatever others
  /// could not clean up is none of its business.
  void allow(const std::string& all_but = "") {
    user_ = "locker" + all_but;
    prefix_ = "interlock:" + all_but;
    std::vector<std::string> words{"ACL",
                                   "SETUSER",
                                   user_,
                                   "on",
                                   ">hush",
                                   "~" + prefix_ + "*",
                                   "~{" + prefix_ + "*",
                                   "&" + prefix_ + "wake:*",
                                   "-@all"};
    for (const auto* list : {&kNeeded, &kHelpful}) {
      for (const auto& command : *list) {
        if (command != all_but) words.push_back("+" + command);
      }
    }
    if (kToList != all_but) words.push_back("+" + kToList);
    ASSERT_EQ(console()(words), "OK");
  }
  [[nodiscard]] const std::string& user() const { return user_; }
  [[nodiscard]] std::string locker() const { return as(user_ + ":hush", "?prefix=" + prefix_); }
  [[nodiscard]] std::string as(const std::string& user, const std::string& more = "") const {
    return "redis://" + user + "@127.0.0.1:" + std::to_string(server().port()) + more;
  }

 private:
  std::string user_;
  std::string prefix_;
};

// Expected: all that the library does works with these rights.
TEST_F(AccessTest, TheLeastRightsAreEnough) {
  allow();
  use_everything(connect(locker()), connect(locker()));
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// Expected: without any one of them something is refused, and the error names the right.
TEST_F(AccessTest, EachOfTheLeastRightsIsNeededAndTheErrorNamesIt) {
  auto needed = kNeeded;
  needed.push_back(kToList);
  for (const auto& command : needed) {
    SCOPED_TRACE(command);
    console()("SCRIPT FLUSH");
    allow(command);
    auto upper = command;
    std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
    // Scripts that the server knows need no EVAL.
    if (command == "eval") console()("ACL SETUSER " + user() + " -script|load");
    try {
      use_everything(connect(locker()), connect(locker()));
      ADD_FAILURE() << "it works without";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused);
      const std::string what = error.what();
      EXPECT_NE(what.find("lacks a right"), std::string::npos) << what;
      EXPECT_TRUE(what.find("'" + command + "'") != std::string::npos ||
                  what.find("+" + upper) != std::string::npos)
          << what;
      EXPECT_FALSE(error.retryable());
      EXPECT_EQ(what.find("hush"), std::string::npos) << what;
    }
  }
}

// Expected: these are missed by nobody.
TEST_F(AccessTest, TheHelpfulRightsAreNotNeeded) {
  for (const auto& command : kHelpful) {
    SCOPED_TRACE(command);
    console()("SCRIPT FLUSH");
    allow(command);
    use_everything(connect(locker()), connect(locker()));
  }
}

// A connection breaks with a request on it, and the user may not end it on the server. Expected: the next
// one serves all the same.
TEST_F(AccessTest, WhoMayNotEndAConnectionConnectsAgain) {
  const Options patient{.ttl = 600s, .retry = {.attempts = 200, .first = 1ms, .max = 50ms}};
  for (const std::string command : {"client|info", "client|kill"}) {
    SCOPED_TRACE(command);
    allow(command);
    servers::Proxy proxy(server().port());
    const auto client =
        connect("redis://" + user() + ":hush@127.0.0.1:" + std::to_string(proxy.port()) +
                "?prefix=interlock:" + command);
    const Mutex mutex(client, "r", patient);
    mutex.acquire().release();
    proxy.cut_after(servers::Proxy::to_client, 3);
    auto lease = mutex.acquire();
    EXPECT_EQ(proxy.faults(), 1);
    EXPECT_EQ(lease.release(), LeaseState::released);
  }
}

// A right is taken away while locks are held, and given back. Expected: a release that was refused is tried
// again in the background until it is not. Whoever waits for it is told at once.
TEST_F(AccessTest, ARefusedReleaseIsTriedAgain) {
  allow();
  const auto refusals = std::make_shared<Refusals>();
  const auto client = connect(locker(), {.observer = refusals});
  const Options long_one{.ttl = 600s};
  auto first = Mutex(client, "first", long_one).acquire();
  auto second = Mutex(client, "second", long_one).acquire();
  ASSERT_EQ(console()("ACL SETUSER locker -evalsha -eval"), "OK");
  EXPECT_THROW(first.release(), Error);
  std::promise<LeaseState> told;
  second.async_release([&](LeaseState state) { told.set_value(state); });
  EXPECT_EQ(told.get_future().get(), LeaseState::lost);
  EXPECT_TRUE(eventually([&] { return refusals->count >= 4; }));
  ASSERT_EQ(console()("ACL SETUSER locker +evalsha +eval"), "OK");
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// Names with braces of their own choose the hash tag. Expected: they need one pattern more.
TEST_F(AccessTest, NamesWithBracesNeedOnePatternMore) {
  allow();
  const Mutex mutex(connect(locker()), "{eu}:orders");
  EXPECT_THROW(static_cast<void>(mutex.try_acquire()), Error);
  console()("ACL SETUSER locker ~{*}interlock:*");
  auto lease = mutex.acquire();
  Waiting waiting(Mutex(connect(locker()), "{eu}:orders"));
  EXPECT_TRUE(eventually([&] { return waiters("{eu}:orders") == 1; }));
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

// Another database. Expected: it needs SELECT, and the error says so.
TEST_F(AccessTest, AnotherDatabaseNeedsSelect) {
  allow();
  try {
    static_cast<void>(Mutex(connect(as("locker:hush", "/3")), "r").try_acquire());
    ADD_FAILURE() << "it works without";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused);
    EXPECT_NE(std::string(error.what()).find("'select'"), std::string::npos) << error.what();
  }
  console()("ACL SETUSER locker +select");
  use_everything(connect(as("locker:hush", "/3")), connect(as("locker:hush", "/3")));
}

// Expected: the error says that a pattern for keys, or for channels, is missing.
TEST_F(AccessTest, AMissingPatternIsNamed) {
  const auto refusal = [&](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused);
      return error.what();
    }
    return "(it works)";
  };
  allow();
  EXPECT_NE(refusal([&] {
              static_cast<void>(Mutex(connect(as("locker:hush", "?prefix=other:")), "r").acquire());
            }).find("key pattern"),
            std::string::npos);
  console()("ACL SETUSER locker resetchannels");
  auto lease = MultiLock(connect(locker()), {"r", "s"}, {.ttl = 600s}).acquire();
  Waiting waiting(Mutex(connect(locker()), "r"));
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1; }));
  EXPECT_NE(refusal([&] { lease.release(); }).find("channel pattern"), std::string::npos);
  // All of it was given back before the script tried to tell the next one.
  EXPECT_TRUE(waiting.lease());
  EXPECT_TRUE(Mutex(connect(locker()), "s").try_acquire());
}

// Expected: refused, not retried for long, with words that tell the three apart, and no secrets.
TEST_F(AccessTest, PasswordsThatAreMissingOrWrongAreRefused) {
  console()("CONFIG SET requirepass correct-horse");
  const auto refusal = [&](const std::string& url) -> std::string {
    const auto start = BootClock::now();
    try {
      const auto locks = connect(url);
      EXPECT_EQ(locks.traits().where.find("horse"), std::string::npos);
      EXPECT_EQ(locks.traits().where.find("battery"), std::string::npos);
      static_cast<void>(Mutex(locks, "r").acquire());
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      EXPECT_EQ(std::string(error.what()).find("battery"), std::string::npos) << error.what();
      EXPECT_LT(BootClock::now() - start, kAboutASecond);
      return error.what();
    }
    return "(it works)";
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(refusal(url()), "wants a password");
  contains(refusal(as(":battery-staple")), "does not know this user or password");
  contains(refusal(as("nobody:battery-staple")), "does not know this user or password");
  EXPECT_EQ(refusal(as(":correct-horse")), "(it works)");
  EXPECT_EQ(refusal(as("default:correct-horse")), "(it works)");
}

// Expected: a URL that can't be used is refused without showing what may be a part of a password.
TEST_F(AccessTest, NoErrorShowsASecret) {
  for (const auto* bad :
       {"redis://me:hush@localhost:99999", "redis://me:hush@localhost/x",
        "redis://me:hu/sh@localhost", "redis://:hush/hush@localhost", "redis://me:hush@a,b",
        "redis://me:hush@localhost?prefix={x", "redis://me:hush@localhost?timeout=never",
        "redis://me:hush%@localhost", "redis://me:hush@localhost?password-env=X",
        "redis://me:hush@", "redis://me:hush@[::1"}) {
    try {
      static_cast<void>(connect(bad));
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::invalid) << bad;
      EXPECT_EQ(std::string(error.what()).find("hu"), std::string::npos) << error.what();
    }
  }
  const auto locks = connect("redis://me:hush@127.0.0.1:1");
  EXPECT_EQ(locks.traits().where, "redis://127.0.0.1:1");
  try {
    static_cast<void>(Mutex(locks, "r").try_acquire());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("hush"), std::string::npos) << error.what();
  }
}

// A server that does not know AUTH repeats all of it. Expected: not the password.
TEST(Secrets, AreNotRepeatedAfterAServer) {
  const servers::RedisServer server({"--rename-command", "AUTH", ""});
  try {
    (void)Mutex(connect("redis://me:hush-hush@" + server.address()), "r").try_acquire();
    ADD_FAILURE() << "it knows no users";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("AUTH"), std::string::npos) << what;
    EXPECT_EQ(what.find("hush"), std::string::npos) << what;
  }
}

// A key that is no lock, and one that another program holds as a lock. Expected: the first is
// refused by name and left alone, the second is busy and left alone.
TEST_F(AccessTest, KeysOfOthersAreLeftAlone) {
  const auto locks = connect(url());
  console()("RPUSH interlock:list a b");
  console()("RPUSH {interlock:side}:queue a b");
  console()("SET interlock:theirs somebody");
  for (const auto* name : {"list", "side"}) {
    SCOPED_TRACE(name);
    const std::vector<Acquirer> ways{Mutex(locks, name), RwLock(locks, name).reader(),
                                     Semaphore(locks, name, 2),
                                     MultiLock(locks, {std::string(name), std::string("other")})};
    for (const auto& way : ways) {
      try {
        const auto attempt = way.try_acquire();
        ADD_FAILURE() << to_string(attempt.outcome());
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::wrong_kind) << error.what();
        EXPECT_FALSE(error.retryable());
      }
    }
  }
  EXPECT_EQ(console()("LRANGE interlock:list 0 -1"), "a\nb");
  EXPECT_EQ(console()("LRANGE {interlock:side}:queue 0 -1"), "a\nb");
  EXPECT_FALSE(Mutex(locks, "theirs").try_acquire());
  EXPECT_FALSE(Mutex(locks, "theirs").try_acquire_for(300ms));
  EXPECT_EQ(console()("GET interlock:theirs"), "somebody");
  EXPECT_EQ(console()("PTTL interlock:theirs"), "-1");
  console()("DEL interlock:list {interlock:side}:queue interlock:theirs");
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

}  // namespace
}  // namespace interlock::redis_tests
