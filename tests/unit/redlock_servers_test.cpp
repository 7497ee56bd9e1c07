// Redlock over real servers that are killed, restarted empty and brought back.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interlock/duration.hpp"
#include "interlock/interlock.hpp"
#include "interlock/stores.hpp"
#include "servers/proxy.hpp"
#include "unit/redlock_servers.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using redlock_tests::ask;
using redlock_tests::claim_on;
using redlock_tests::RedlockServers;
using redlock_tests::release;
using testing_support::eventually;

// Rows 0.12 and 1.4, and acceptance case 40.
TEST_F(RedlockServers, ALeaseOutlivesAMinorityOfItsNodes) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r", {.ttl = 1s}).acquire();
  nodes_[0]->stop();
  const auto first = lease.valid_until();
  EXPECT_TRUE(eventually([&] { return lease.valid_until() > first + 1s || !lease; }));
  EXPECT_TRUE(lease) << lease.lost_reason();
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire());
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
}

TEST_F(RedlockServers, ANodeThatRestartedEmptyIsHealedAtTheNextRenewal) {
  const auto locks = connect(url());
  auto lease = Mutex(locks, "r", {.ttl = 3s}).acquire();
  const auto fence = lease.fence();
  ASSERT_TRUE(eventually([&] { return holds(2, lease.owner()); }));
  restart_empty(2);
  ASSERT_FALSE(holds(2, lease.owner()));
  ASSERT_TRUE(lease.extend(3s));
  EXPECT_TRUE(eventually([&] { return holds(2, lease.owner()); }));
  EXPECT_EQ(on(2).at(0).holders.at(0).fence, fence);
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return on(0).empty() && on(1).empty() && on(2).empty(); }));
}

TEST_F(RedlockServers, WithoutAMajorityNothingIsHealedAndTheLossIsTold) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "r", {.ttl = 3s}).acquire();
  const auto owner = lease.owner();
  ASSERT_TRUE(eventually([&] { return holds(0, owner) && holds(1, owner); }));
  restart_empty(0);
  restart_empty(1);
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_FALSE(holds(0, owner));
  EXPECT_FALSE(holds(1, owner));
}

TEST_F(RedlockServers, WhenAMajorityIsCutOffTheLossIsToldInTime) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "r", {.ttl = 1s}).acquire();
  nodes_[0]->process().signal(SIGSTOP);
  nodes_[1]->process().signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  EXPECT_LT(BootClock::now(), lease.valid_until() + 5s);
  nodes_[0]->process().signal(SIGCONT);
  nodes_[1]->process().signal(SIGCONT);
}

// Row 1.4 and acceptance case 41: two of three are down. The TTL is so long that what the live one granted
// does not go away by itself, and so is the time that a call may take.
TEST_F(RedlockServers, WithoutAMajorityItFailsFastNamesEachNodeAndLeavesNothingBehind) {
  const auto locks = connect(url("&timeout=120s"));
  Mutex(locks, "r").acquire().release();
  nodes_[0]->stop();
  nodes_[2]->stop();
  const auto start = BootClock::now();
  try {
    static_cast<void>(Mutex(locks, "r", {.ttl = 1h, .retry = Retry::none()}).try_acquire());
    FAIL() << "one of three is no majority";
  } catch (const Error& error) {
    EXPECT_LT(BootClock::now() - start, 20s) << "nobody is there, and that is known at once";
    EXPECT_EQ(error.errc(), Errc::unreachable);
    const std::string text = error.what();
    for (const auto& node : nodes_) {
      EXPECT_NE(text.find("127.0.0.1:" + std::to_string(node->port()) + ": "), std::string::npos)
          << text;
    }
    EXPECT_NE(text.find("2 of 3"), std::string::npos) << text;
    // It does not wait for the third one, which can't help any more.
    EXPECT_TRUE(text.find(": granted") != std::string::npos ||
                text.find(": not answered yet") != std::string::npos)
        << text;
  }
  EXPECT_TRUE(eventually([&] { return on(1).empty(); })) << "what it got is given back";
}

// Row 1.4: the TTL is so long that only giving back frees the third node.
TEST_F(RedlockServers, AMinorityThatWasGrantedIsGivenBack) {
  const auto mine = connect(url());
  Mutex(mine, "other").acquire().release();
  // Somebody else has it on two of three nodes.
  const auto a = Mutex(connect(nodes_[0]->url() + "?prefix=rl:"), "r").acquire();
  const auto b = Mutex(connect(nodes_[1]->url() + "?prefix=rl:"), "r").acquire();
  const Mutex wanted(mine, "r", {.ttl = 1h});
  EXPECT_EQ(wanted.try_acquire().outcome(), Outcome::busy);
  EXPECT_TRUE(eventually([&] { return on(2).empty(); }));
  EXPECT_EQ(wanted.try_acquire_for(300ms).outcome(), Outcome::timed_out);
  EXPECT_TRUE(eventually([&] { return on(2).empty(); }));
}

// Row 1.4 and acceptance case 41: nodes that hang cost no more than a quarter of the TTL, what a call may
// take, and what the caller allows, whichever is least. Each of the three is small in turn and the others
// are a minute or more.
TEST_F(RedlockServers, NodesThatHangCostNoMoreThanTheLeastOfThreeBounds) {
  const auto patient = connect(url("&timeout=1m"));
  const auto hasty = connect(url("&timeout=300ms"));
  for (const auto& locks : {patient, hasty}) Mutex(locks, "r").acquire().release();
  nodes_[0]->process().signal(SIGSTOP);
  nodes_[2]->process().signal(SIGSTOP);
  const auto cost = [](const auto& acquire) {
    const auto start = BootClock::now();
    try {
      acquire();
      ADD_FAILURE() << "one of three is no majority";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    }
    return BootClock::now() - start;
  };
  const Options brief{.ttl = 1s, .retry = Retry::none()};
  const Options lasting{.ttl = 1h, .retry = Retry::none()};
  EXPECT_LT(cost([&] { (void)Mutex(patient, "r", brief).try_acquire(); }), 20s) << "the TTL";
  EXPECT_LT(cost([&] { (void)Mutex(hasty, "r", lasting).try_acquire(); }), 20s) << "the call";
  EXPECT_LT(cost([&] { (void)Mutex(patient, "r", lasting).try_acquire_for(1s); }), 20s)
      << "the caller";
  for (const auto node : {0U, 2U}) nodes_[node]->process().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return on(0).empty() && on(1).empty() && on(2).empty(); }))
      << "also what a node did late is given back";
}

// Acceptance case 40: one of three hangs, and nobody waits for it.
TEST_F(RedlockServers, ANodeThatHangsIsNotWaitedForByAMajority) {
  const auto locks = connect(url("&timeout=1m"));
  Mutex(locks, "r").acquire().release();
  nodes_[1]->process().signal(SIGSTOP);
  const auto start = BootClock::now();
  EXPECT_TRUE(Mutex(locks, "r", {.ttl = 1h}).try_acquire());
  EXPECT_LT(BootClock::now() - start, 20s);
  nodes_[1]->process().signal(SIGCONT);
}

TEST_F(RedlockServers, FencesRiseWhileOneNodeAfterTheOtherLosesItsData) {
  const auto locks = connect(url());
  Fence last{};
  const auto next = [&] {
    const auto fence = Mutex(locks, "r", {.ttl = 300ms}).acquire().fence();
    EXPECT_GT(fence, last);
    last = fence;
  };
  for (std::size_t round = 0; round < 6; ++round) {
    for (int i = 0; i < 5; ++i) next();
    const auto node = round % 3;
    restart_empty(node);
    // The others grant it meanwhile, and repair the new one when it has waited.
    EXPECT_TRUE(eventually([&] { return next(), counts(node); }));
    // Now it is needed: another one is gone.
    const auto gone = (node + 1) % 3;
    nodes_[gone]->process().signal(SIGSTOP);
    for (int i = 0; i < 5; ++i) next();
    nodes_[gone]->process().signal(SIGCONT);
  }
}

TEST_F(RedlockServers, ANodeThatLostItsDataDoesNotCountUntilOldHoldsHaveEnded) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "old", {.ttl = 2s, .renew = false}).acquire();
  restart_empty(0);
  nodes_[1]->stop();
  // Two of three answer, but the one that is new may have been part of anything.
  const Mutex other(connect(url()), "new", {.ttl = 300ms, .retry = Retry::none()});
  try {
    static_cast<void>(other.try_acquire());
    FAIL() << "a new node counted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lost its data"), std::string::npos) << error.what();
  }
  nodes_[1]->start();  // empty as well: a majority is new, and begins anew
  EXPECT_TRUE(eventually([&] {
    try {
      return static_cast<bool>(other.try_acquire());
    } catch (const Error&) {
      return false;
    }
  }));
}

/// Claims of one identity, over stores that can't reach one of the three nodes.
class RedlockOfAnIdentity : public RedlockServers {
 protected:
  RedlockOfAnIdentity() {
    Mutex(connect(url()), "other").acquire().release();
    EXPECT_TRUE(eventually([&] { return counts(0) && counts(1) && counts(2); }));
    // Node 2 has granted more than the others.
    (void)nodes_[2]->cli({"HINCRBY", "{rl:}:node", "count", "10"});
  }

  static Claim claim_of_ann() {
    auto claim = claim_on("r");
    claim.ttl = 600s;
    claim.who = std::make_shared<const Who>(Who{.identity = "Ann", .host = "here"});
    return claim;
  }
};

// Two claims of one identity are taken at the same time, over different majorities, and get different fences.
// The one with the larger fence is released. Expected: a third one gets no smaller fence than that, although it
// shares the lock with the one that has the smaller fence.
TEST_F(RedlockOfAnIdentity, FencesDoNotGoBackWhenTheClaimWithTheLargerOneIsReleased) {
  const auto one = store_without(1);
  const auto other = store_without(2);
  nodes_[2]->process().signal(SIGSTOP);
  const auto slow = claim_of_ann();
  auto slow_answer = ask(*one, slow, 60s);
  ASSERT_TRUE(eventually([&] { return holds(0, slow.owner); }));
  const auto smaller = ask(*other, claim_of_ann(), 60s).get();
  ASSERT_EQ(smaller.verdict, Verdict::granted);
  nodes_[2]->process().signal(SIGCONT);
  const auto larger = slow_answer.get();
  ASSERT_EQ(larger.verdict, Verdict::granted);
  ASSERT_GT(larger.fences.at(0), smaller.fences.at(0));
  release(*one, slow);
  const auto last = ask(*other, claim_of_ann(), 60s).get();
  ASSERT_EQ(last.verdict, Verdict::granted);
  EXPECT_GE(last.fences.at(0), larger.fences.at(0));
}

// A node answers when the claim is granted already, with a number that is larger than the fence. Expected: the node
// is told the fence, and a later claim of the identity shares it.
TEST_F(RedlockOfAnIdentity, ANodeThatAnsweredTooLateSharesTheFenceOfTheOthers) {
  const auto all = stores::open(url("&timeout=1m"));
  ASSERT_EQ(ask(*all, claim_on("connected"), 60s).get().verdict, Verdict::granted);
  nodes_[2]->process().signal(SIGSTOP);
  const auto outer = claim_of_ann();
  const auto granted = ask(*all, outer, 60s).get();
  ASSERT_EQ(granted.verdict, Verdict::granted);
  nodes_[2]->process().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] {
    for (const auto& state : on(2)) {
      for (const auto& holder : state.holders) {
        if (holder.owner == outer.owner) return holder.fence == granted.fences.at(0);
      }
    }
    return false;
  }));
  const auto inner = ask(*store_without(0), claim_of_ann(), 60s).get();
  ASSERT_EQ(inner.verdict, Verdict::granted);
  EXPECT_EQ(inner.fences, granted.fences);
}

// Of two claims of one identity, the one with the larger fence is released, and a node that held it loses its
// data. Expected: healed by the renewal of the other claim, the node learns the larger fence from those who know it.
TEST_F(RedlockOfAnIdentity, ANodeThatLostItsDataIsHealedWithTheLargestFence) {
  const auto one = store_without(1);
  const auto other = store_without(2);
  nodes_[2]->process().signal(SIGSTOP);
  const auto slow = claim_of_ann();
  auto slow_answer = ask(*one, slow, 60s);
  ASSERT_TRUE(eventually([&] { return holds(0, slow.owner); }));
  const auto outer = claim_of_ann();
  ASSERT_EQ(ask(*other, outer, 60s).get().verdict, Verdict::granted);
  nodes_[2]->process().signal(SIGCONT);
  const auto larger = slow_answer.get();
  ASSERT_EQ(larger.verdict, Verdict::granted);
  release(*one, slow);
  restart_empty(2);
  const auto all = stores::open(url("&timeout=1m"));
  std::promise<Verdict> renewed;
  all->renew(outer, {.deadline = BootClock::now() + 60s},
             [&](const Answer& answer) { renewed.set_value(answer.verdict); });
  ASSERT_EQ(renewed.get_future().get(), Verdict::granted);
  ASSERT_TRUE(eventually([&] { return holds(2, outer.owner); }));
  EXPECT_GE(on(2).at(0).holders.at(0).fence, larger.fences.at(0));
}

// A call gets no answer in time, and its owner asks again. Meanwhile the first call still tries to have
// a node mended. Expected: when it gives up at last, it leaves what the second call was granted.
TEST_F(RedlockServers, ACallThatGivesUpLateLeavesTheNextGrantOfItsOwnerAlone) {
  // The node that is empty afterwards does not count for as long as this might have lasted.
  Mutex(connect(url()), "long", {.ttl = 300s}).acquire().release();
  restart_empty(1);
  const auto store = stores::open(url());
  ASSERT_EQ(ask(*store, claim_on("connected"), 60s).get().verdict, Verdict::granted);
  nodes_[2]->process().signal(SIGSTOP);
  const auto claim = claim_on("r");
  auto first = ask(*store, claim, 100ms);
  const auto late = BootClock::now() + 100ms;
  ASSERT_TRUE(eventually([&] { return BootClock::now() > late; }));
  auto second = ask(*store, claim, 60s);
  nodes_[2]->process().signal(SIGCONT);
  EXPECT_EQ(second.get().verdict, Verdict::granted);
  // On a slow machine, the node that goes on answers the first call before that gives up.
  const auto early = first.get().verdict;
  EXPECT_TRUE(early == Verdict::unknown || early == Verdict::granted);
  auto rival = claim;
  rival.owner = Owner::random();
  EXPECT_EQ(ask(*store, rival, 60s).get().verdict, Verdict::busy);
}

// The connections for messages are made, and nobody answers on them. Expected: a waiter that runs out of time
// is told that the lock was taken, as a majority answered all the while.
TEST_F(RedlockServers, HungSubscriptionsDoNotMakeTheStoreUnreachable) {
  std::vector<std::unique_ptr<servers::Proxy>> proxies;
  std::string text = "redlock://";
  for (const auto& node : nodes_) {
    proxies.push_back(std::make_unique<servers::Proxy>(node->port()));
    proxies.back()->drop(servers::Proxy::to_server, "SUBSCRIBE", 1000);
    text += (proxies.size() == 1 ? "127.0.0.1:" : ",127.0.0.1:") +
            std::to_string(proxies.back()->port());
  }
  const auto lease = Mutex(connect(url()), "r", {.ttl = 60s}).acquire();
  const auto locks = connect(text + "?prefix=rl:");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Mutex(locks, "r").try_acquire_for(1s).outcome(), Outcome::timed_out);
  EXPECT_GT(proxies[0]->faults(), 0);
}

// The release does not reach a node, as its connection is cut just then. A majority has it, and so the lease
// is released. Expected: the node is told again; it would refuse everybody until the TTL has ended, and two such
// nodes would leave no majority to anybody.
TEST_F(RedlockServers, AReleaseThatANodeMissedIsRepeated) {
  servers::Proxy proxy(nodes_[0]->port());
  const auto locks = connect("redlock://127.0.0.1:" + std::to_string(proxy.port()) + "," +
                             nodes_[1]->address() + "," + nodes_[2]->address() + "?prefix=rl:");
  auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  ASSERT_TRUE(eventually([&] { return holds(0, lease.owner()); }));
  proxy.cut_at(servers::Proxy::to_server, "EVALSHA");
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return proxy.faults() == 1; }));
  EXPECT_TRUE(eventually([&] { return on(0).empty(); }));
}

/// What an observer is warned of.
class Warnings final : public Observer {
 public:
  void on(const Observation& seen) noexcept override {
    const std::lock_guard lock(mutex_);
    if (seen.event == Event::warned) texts_.emplace_back(seen.error->what());
  }
  [[nodiscard]] std::size_t count(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        texts_.begin(), texts_.end(),
        [&](const std::string& warning) { return warning.find(text) != std::string::npos; }));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

TEST_F(RedlockServers, ANodeThatIsBackWithAnOldStateDoesNotCount) {
  const auto locks = connect(url());
  const Mutex other(locks, "other", {.ttl = 60s});
  const auto lease = Mutex(locks, "r", {.ttl = 60s}).acquire();
  ASSERT_TRUE(eventually([&] { return holds(2, lease.owner()); }));
  (void)nodes_[2]->cli({"SAVE"});
  ASSERT_TRUE(other.try_acquire());
  ASSERT_TRUE(counts(2)) << "not even before";
  nodes_[2]->stop();
  nodes_[2]->start();
  ASSERT_TRUE(counts(2)) << "not what it saved";
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(other.try_acquire());
    return !counts(2);
  })) << "the client took it for the server that it was connected to before";
}

TEST_F(RedlockServers, EachNodeThatKeepsNothingIsWarnedOf) {
  nodes_[0]->cli({"CONFIG", "SET", "appendonly", "yes"});
  const auto warnings = std::make_shared<Warnings>();
  const auto locks = connect(url(), {.observer = warnings});
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
  EXPECT_TRUE(eventually([&] { return warnings->count("append-only") == 2; }));
  EXPECT_EQ(warnings->count(nodes_[0]->address()), 0U);
}

class RedlockOfTwo : public RedlockServers {
 protected:
  RedlockOfTwo() : RedlockServers(2) {}
};

TEST_F(RedlockOfTwo, AnEvenNumberOfNodesIsWarnedOf) {
  const auto warnings = std::make_shared<Warnings>();
  const auto locks = connect(url(), {.observer = warnings});
  ASSERT_EQ(locks.traits().warnings.size(), 1U);
  EXPECT_NE(locks.traits().warnings[0].find("odd number"), std::string::npos);
  EXPECT_EQ(warnings->count("odd number"), 1U);
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
  nodes_[0]->stop();
  EXPECT_THROW(static_cast<void>(Mutex(locks, "r", {.retry = Retry::none()}).try_acquire()), Error);
}

TEST(RedlockUrl, SaysWhatIsWrong) {
  for (const auto* url :
       {"redlock://", "redlock://one", "redlock://a,b,a", "redlock://a,b,c?nodes=redis%3A//d",
        "redlock:?nodes=memory%3A,redis%3A//a", "redlock:?nodes=redis%3A//a%3Fprefix=x,redis%3A//b",
        "redlock://a,b,c?nonsense=1"}) {
    try {
      static_cast<void>(connect(url));
      FAIL() << '"' << url << "\" was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::invalid) << url << ": " << error.what();
    }
  }
}

TEST(RedlockUrl, NodesMayBeFullUrlsAndNoSecretIsShown) {
  const auto locks =
      connect("redlock:?nodes=redis%3A//u:hunter2%40a:1,redis%2Bunix%3A///run/b,redis%3A//c:3/2");
  EXPECT_EQ(locks.traits().where, "redlock://a:1,/run/b,c:3");
  EXPECT_EQ(locks.traits().drift(10s), 102ms);
}

TEST(RedlockUrl, SemaphoresAreRefusedWithTheReason) {
  const auto locks = connect("redlock://a,b,c");
  try {
    static_cast<void>(Semaphore(locks, "s", 2).try_acquire());
    FAIL() << "a Redlock has no semaphores";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unsupported);
    EXPECT_NE(std::string(error.what()).find("three holders of two slots"), std::string::npos);
  }
}

}  // namespace
}  // namespace interlock
