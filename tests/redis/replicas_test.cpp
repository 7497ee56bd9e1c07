// min-replicas: a grant counts when so many replicas have it.
#include <atomic>
#include <thread>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

class Replicas : public RedisTest {
 protected:
  Replicas() : RedisTest({"--repl-diskless-sync-delay", "0"}) {}
  [[nodiscard]] std::string strict_url() const { return url() + "?min-replicas=1"; }
  [[nodiscard]] std::unique_ptr<servers::RedisServer> replica() {
    auto made = std::make_unique<servers::RedisServer>(
        std::vector<std::string>{"--replicaof", "127.0.0.1 " + std::to_string(server().port())});
    // What was there is copied first. The stream of commands that follow may begin a second later.
    const auto copies = [&] {
      console()("SET probe something PX 1000");
      return console()("WAIT 1 100") == "1";
    };
    EXPECT_TRUE(eventually(copies));
    EXPECT_TRUE(eventually(copies));
    return made;
  }
};

/// Try for locks of their own, again and again.
class Triers {
 public:
  Triers(const Client& locks, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back(
          [this, mutex = Mutex(locks, "own " + std::to_string(i), {.retry = Retry::none()})](
              const std::stop_token& stop) {
            while (!stop.stop_requested()) {
              try {
                if (mutex.try_acquire()) ++granted_;
              } catch (const Error& error) {
                ++refused_;
              }
            }
          });
    }
  }
  [[nodiscard]] int granted() const { return granted_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  std::atomic<int> granted_ = 0;
  std::atomic<int> refused_ = 0;
  std::vector<std::jthread> threads_;
};

// The replica is gone, and many ask for locks that it can't confirm. Expected: a lease of the same client
// is renewed all the while.
TEST_F(Replicas, WaitingForAReplicaHoldsUpNoRenewal) {
  const auto other = replica();
  const auto locks = connect(strict_url());
  const auto lease = Mutex(locks, "held", {.ttl = 6s}).acquire();
  other->stop();
  const auto until = lease.valid_until() + 7s;
  {
    const Triers triers(locks,
                        16);  // a second each, so one after the other they take longer than the TTL
    EXPECT_TRUE(eventually([&] { return lease.valid_until() > until || !lease; }));
    EXPECT_GT(triers.refused(), 0);
  }
  EXPECT_TRUE(lease) << lease.lost_reason();
}

// Expected: a renewal does not stand behind those who wait for the replica, however short their turns.
TEST_F(Replicas, ARenewalIsAnsweredAtOnceWhileOthersWaitForAReplica) {
  const auto other = replica();
  const auto locks = connect(strict_url());
  auto lease = Mutex(locks, "held", {.ttl = 600s}).acquire();
  other->stop();
  const Triers triers(locks, 4);
  EXPECT_TRUE(eventually([&] { return triers.refused() > 0; }));
  const auto began = BootClock::now();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(lease.extend(600s));
  EXPECT_LT(BootClock::now() - began, 1s);
}

// Expected: many grants at once are each confirmed.
TEST_F(Replicas, ManyGrantsAreConfirmedTogether) {
  const auto other = replica();
  const auto locks = connect(strict_url());
  const Triers triers(locks, 16);
  EXPECT_TRUE(eventually([&] { return triers.granted() > 500; }));
  EXPECT_EQ(triers.refused(), 0);
}

// Expected: what the replica does not have is given back; and all is well when it is there again.
TEST_F(Replicas, AGrantCountsAgainWhenTheReplicaIsBack) {
  const auto other = replica();
  const auto locks = connect(strict_url());
  const Mutex mutex(locks, "r", {.ttl = 2s, .retry = Retry::none()});
  EXPECT_TRUE(mutex.try_acquire());
  other->stop();
  const auto refused = [&] {
    try {
      return !mutex.try_acquire();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("0 of 1 replicas"), std::string::npos)
          << error.what();
      return true;
    }
  };
  EXPECT_TRUE(eventually(refused)) << "until the server has noticed";
  EXPECT_EQ(holders("r"), 0U);
  other->start();
  EXPECT_TRUE(eventually([&] { return !refused(); }));
}

// The call gave up waiting for its answer, and its owner asks again, while a replica is awaited. Expected:
// what the first call gives back late is not what the second one was granted.
TEST_F(Replicas, ACallThatGivesUpLateLeavesTheNextGrantOfItsOwnerAlone) {
  const auto other = replica();
  const auto store = stores::open(strict_url());
  const Claim claim{.owner = Owner::random(),
                    .parts = {{.resource = "r"}},
                    .ttl = 10s,
                    .who = std::make_shared<const Who>(Who{.host = "here"})};
  const auto ask = [&](Duration within) {
    const auto promise = std::make_shared<std::promise<Answer>>();
    store->acquire(claim, false, {.deadline = BootClock::now() + within},
                   [promise](Answer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  };
  ASSERT_EQ(ask(kPatience).get().verdict, Verdict::granted);
  // The second call has to begin while the first one waits, and to be confirmed in time.
  EXPECT_TRUE(eventually([&] {
    other->process().signal(SIGSTOP);
    auto first = ask(kPatience);
    const bool waits = first.wait_for(500ms) != std::future_status::ready;
    auto second = ask(kPatience);
    const bool failed = first.get().verdict == Verdict::unknown;
    other->process().signal(SIGCONT);
    if (second.get().verdict != Verdict::granted) return false;
    EXPECT_EQ(holders("r"), 1U);
    return waits && failed;
  }));
}

class WithoutWait : public RedisTest {
 protected:
  WithoutWait() : RedisTest({"--rename-command", "WAIT", ""}) {}
};

// Expected: said when it connects, before anything is granted.
TEST_F(WithoutWait, MinReplicasIsRefusedWhenItConnects) {
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
  console()("FLUSHALL");
  const auto locks = connect(url() + "?min-replicas=1");
  for (const bool looks : {true, false}) {
    try {
      if (looks) (void)locks.inspect({.resources = {"r"}});
      if (!looks) (void)Mutex(locks, "r").try_acquire();
      ADD_FAILURE() << "there is no WAIT";
    } catch (const Error& error) {
      EXPECT_FALSE(error.retryable()) << error.what();
      EXPECT_NE(std::string(error.what()).find("min-replicas needs the command WAIT"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(keys(), "");
}

// A user who may not give the command is told the same.
TEST_F(Replicas, ForAUserWhoMayNotWaitMinReplicasIsRefused) {
  console()("ACL SETUSER locks on >secret ~* &* +@all -wait");
  const auto address = "redis://locks:secret@" + server().address();
  EXPECT_TRUE(Mutex(connect(address), "r").try_acquire());
  try {
    (void)Mutex(connect(address + "?min-replicas=1"), "r").try_acquire();
    ADD_FAILURE() << "it may not wait";
  } catch (const Error& error) {
    EXPECT_FALSE(error.retryable()) << error.what();
    EXPECT_NE(std::string(error.what()).find("min-replicas needs the command WAIT"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace interlock::redis_tests
