// A lease can be turned into a printable token, and back, by anybody who has it.
#include <cctype>

#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

class Detaching : public Conformance {
 protected:
  void SetUp() override {
    if (!client().traits().detaches) GTEST_SKIP() << "a lease ends with its client here";
  }
};
INSTANTIATE_TEST_SUITE_P(, Detaching, testing::ValuesIn(stores()), store_name);

TEST_P(Detaching, ATokenHoldsOnWithoutAProcessThatRenewsIt) {
  COVERS(Rule<12>);
  auto lease = Mutex(client(), "r").acquire();
  const auto owner = lease.owner();
  const auto lost = lease.lost();
  const auto token = lease.detach();
  EXPECT_EQ(lease.state(), LeaseState::released);
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(look("r").holders.at(0).owner, owner);
  EXPECT_TRUE(std::all_of(token.begin(), token.end(), [](unsigned char c) {
    return std::isgraph(c);
  })) << token;
}

TEST_P(Detaching, AnotherClientAdoptsIt) {
  COVERS(Rule<12>, Rule<5>);
  auto lease = Mutex(client(), "r", {.ttl = 20s, .label = "moved"}).acquire();
  const auto owner = lease.owner();
  const auto fence = lease.fence();
  auto adopted = client().adopt(lease.detach());
  EXPECT_TRUE(adopted);
  EXPECT_EQ(adopted.owner(), owner);
  EXPECT_EQ(adopted.fence(), fence);
  EXPECT_EQ(adopted.resource(), "r");
  EXPECT_EQ(adopted.ttl(), 20s);
  EXPECT_FALSE(Mutex(client(), "r").try_acquire());
  EXPECT_EQ(adopted.release(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Detaching, AnAdoptedLeaseRenewsItself) {
  COVERS(Rule<7>);
  auto adopted = client().adopt(Mutex(client(), "r", {.ttl = 1s}).acquire().detach());
  const auto first = adopted.valid_until();
  EXPECT_TRUE(eventually([&] { return adopted.valid_until() > first || !adopted; }));
}

TEST_P(Detaching, ASetWithEveryModeComesBackWhole) {
  COVERS(Rule<2>);
  if (!client().traits().slots) GTEST_SKIP() << "this store has no semaphores";
  auto lease = MultiLock(client(), {exclusive("t/a"), shared("b"), slots("c", 2, 5)}).acquire();
  auto adopted = client().adopt(lease.detach());
  EXPECT_EQ(adopted.resources(), (std::vector<std::string>{"b", "c", "t/a"}));
  EXPECT_EQ(look("b").holders.at(0).mode, Mode::shared);
  EXPECT_EQ(look("c").holders.at(0).slots, 2U);
  EXPECT_EQ(holders("t"), 1U);
  EXPECT_EQ(adopted.release(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Detaching, ATokenNobodyAdoptsEndsWithItsTtl) {
  COVERS(Rule<6>);
  const auto token = Mutex(client(), "r", {.ttl = 300ms}).acquire().detach();
  const auto next = Mutex(client(), "r").acquire();
  try {
    static_cast<void>(client().adopt(token));
    FAIL() << "it has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::lost) << error.what();
  }
  EXPECT_EQ(look("r").holders.at(0).owner, next.owner());
}

TEST_P(Detaching, AdoptedWithoutRenewalItEndsByItself) {
  COVERS(Rule<6>, Rule<7>);
  const auto adopted =
      client().adopt(Mutex(client(), "r", {.ttl = 500ms}).acquire().detach(), false);
  const auto next = Mutex(client(), "r").acquire();
  EXPECT_EQ(adopted.state(), LeaseState::lost);
}

TEST_P(Detaching, ATokenThatLostAPartIsGivenBackWhole) {
  COVERS(Rule<8>);
  auto set = MultiLock(client(), {"a", "b"}, {.ttl = 60s}).acquire();
  const auto owner = set.owner();
  const auto token = set.detach();
  EXPECT_TRUE(client().evict("a", owner));
  try {
    static_cast<void>(client().adopt(token));
    ADD_FAILURE() << "a part of it is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::lost) << error.what();
  }
  EXPECT_TRUE(look("b").holders.empty());
}

TEST_P(Detaching, AReleasedTokenCantBeAdopted) {
  COVERS(Rule<8>);
  const auto token = Mutex(client(), "r").acquire().detach();
  EXPECT_EQ(client().adopt(token).release(), LeaseState::released);
  EXPECT_THROW(static_cast<void>(client().adopt(token)), Error);
  EXPECT_TRUE(nothing_left());
}

CONFORMANCE_SUITE(NotDetaching);

TEST_P(NotDetaching, ALeaseThatCantBeDetachedSaysSoAndHoldsOn) {
  COVERS(Rule<10>);
  const auto locks = client();
  if (locks.traits().detaches) GTEST_SKIP() << "it can be detached";
  auto one = Mutex(locks, "r", {.ttl = 1s}).acquire();
  auto several = MultiLock(locks, {exclusive("a"), shared("b"), slots("c", 1, 2)}).acquire();
  for (auto* const lease : {&one, &several}) {
    try {
      static_cast<void>(lease->detach());
      FAIL() << "a token that holds nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unsupported) << error.what();
      EXPECT_EQ(error.resource(), lease->resource());
    }
    EXPECT_TRUE(*lease);
    EXPECT_EQ(holders(lease->resource()), 1U);
  }
  const auto first = one.valid_until();
  EXPECT_TRUE(eventually([&] { return one.valid_until() > first || !one; })) << "renewed as before";
  EXPECT_EQ(one.release(), LeaseState::released);
  EXPECT_EQ(several.release(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Detaching, OneThatFailsLeavesTheLeaseAsItWasAndRenewed) {
  COVERS(Rule<7>, Rule<10>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire));
  for (const auto fate : {Fate::fail, Fate::swallow, Fate::mute}) {
    auto lease = Mutex(locks, "r", {.ttl = 3s}).acquire();
    wire->set(Kind::renew, fate);
    EXPECT_THROW(static_cast<void>(lease.detach()), Error);
    const auto valid = lease.valid_until();
    wire->set(Kind::renew, Fate::pass);
    EXPECT_TRUE(eventually([&] { return lease.valid_until() > valid || !lease; }));
    EXPECT_TRUE(lease);
    EXPECT_EQ(look("r").holders.at(0).who, lease.who());
    EXPECT_EQ(lease.release(), LeaseState::released);
  }
}

}  // namespace
}  // namespace interlock::conformance
