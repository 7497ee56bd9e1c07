// Redlock's two phases, and the repair of nodes that lost their data, over real servers: what no counter of a single
// node shows. (redlock_model_test.cpp says why each rule is needed.)
#include <gtest/gtest.h>

#include "backends/redis/redlock_group.hpp"
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

class RedlockPhases : public RedlockServers {
 protected:
  RedlockPhases() {
    Mutex(connect(url()), "other", {.ttl = 300ms}).acquire().release();
    EXPECT_TRUE(eventually([&] { return counts(0) && counts(1) && counts(2); }));
    // It has granted more than the others, so that its number is the fence.
    (void)nodes_[0]->cli({"HINCRBY", "{rl:}:node", "count", "1000"});
  }
  /// A number that the node keeps about itself.
  [[nodiscard]] std::uint64_t number(std::size_t node, const std::string& field) const {
    const auto text = nodes_[node]->cli({"HGET", "{rl:}:node", field});
    return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10);
  }
};

// The fence of a grant is known to one node. The next grant does without that one.
TEST_F(RedlockPhases, AFenceIsAboveThatOfAGrantOverOtherNodes) {
  const auto one = store_without(2);
  const auto other = store_without(0);
  const auto first = claim_on("r");
  const auto before = ask(*one, first, 60s).get();
  ASSERT_EQ(before.verdict, Verdict::granted);
  release(*one, first);
  const auto after = ask(*other, claim_on("r"), 60s).get();
  ASSERT_EQ(after.verdict, Verdict::granted);
  EXPECT_GT(after.fences.at(0), before.fences.at(0));
}

// A majority grants, and one of the two never hears of the fence.
TEST_F(RedlockPhases, AGrantIsToldOnlyWhenAMajorityKnowsItsFence) {
  servers::Proxy proxy(nodes_[1]->port());
  proxy.drop(servers::Proxy::to_server, redis::RedlockScripts::all().confirm.sha1, 1000);
  const auto store = stores::open(
      "redlock://" + nodes_[0]->address() + ",127.0.0.1:" + std::to_string(proxy.port()) +
      ",127.0.0.1:" + std::to_string(servers::free_port()) + "?prefix=rl:&timeout=1m");
  auto claim = claim_on("r");
  claim.ttl = 4s;  // a node may take a quarter of that
  EXPECT_EQ(ask(*store, claim, 60s).get().verdict, Verdict::unknown);
  EXPECT_GT(proxy.faults(), 0);
}

TEST_F(RedlockPhases, AMinorityRenewsNothing) {
  auto lease = Mutex(connect(url()), "r", {.ttl = 60s, .renew = false}).acquire();
  nodes_[1]->stop();
  nodes_[2]->stop();
  EXPECT_THROW(lease.extend(60s), Error);
}

using RedlockRepair = RedlockPhases;

// What the node granted before it lost its data may be held for minutes.
TEST_F(RedlockRepair, WaitsUntilTheLastHoldThatIsKnownHasEnded) {
  const auto locks = connect(url());
  const auto lease = Mutex(locks, "old", {.ttl = 300s, .renew = false}).acquire();
  restart_empty(2);
  const auto in_a_while = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(now).count()) +
           200'000;
  };
  EXPECT_TRUE(eventually([&] {
    Mutex(locks, "new", {.ttl = 300ms}).acquire().release();
    return counts(2) || number(2, "wait") > 0;
  }));
  EXPECT_FALSE(counts(2));
  EXPECT_GT(number(2, "wait"), in_a_while());
}

TEST_F(RedlockRepair, GoesOnFromTheLargestFenceThatIsKnown) {
  const auto locks = connect(url());
  restart_empty(2);
  Fence last{};
  EXPECT_TRUE(eventually([&] {
    auto lease = Mutex(locks, "r", {.ttl = 300ms}).acquire();
    last = lease.fence();
    lease.release();
    // Nothing is granted meanwhile, as a grant would tell the node of its fence.
    return eventually([&] { return counts(2); }, 200ms);
  }));
  EXPECT_GE(Fence{number(2, "count")}, last);
}

// A clock that is set back, or, which is the same: times that the nodes keep are later.
TEST_F(RedlockRepair, AClockThatIsSetBackDelaysItByNoMoreThanTheLongestHold) {
  const auto locks = connect(url());
  static_cast<void>(Mutex(locks, "old", {.ttl = 2s}).acquire().detach());
  const auto set_back = [&](const std::string& field) {
    for (std::size_t node = 0; node < 3; ++node) {
      if (number(node, field) > 0)
        (void)nodes_[node]->cli({"HINCRBY", "{rl:}:node", field, "3600000"});
    }
  };
  set_back("until");
  restart_empty(2);
  EXPECT_TRUE(eventually([&] {
    Mutex(locks, "new", {.ttl = 300ms}).acquire().release();
    return counts(2) || number(2, "wait") > 0;
  }));
  set_back("wait");
  EXPECT_TRUE(eventually([&] {
    Mutex(locks, "new", {.ttl = 300ms}).acquire().release();
    return counts(2);
  }));
}

}  // namespace
}  // namespace interlock
