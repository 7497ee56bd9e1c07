// A change of modes whose answer is lost, late or a refusal: the lease is then what it was or what it
// wanted to be, and never one that the store knows nothing of.
#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

class ChangesInDoubt : public Conformance {
 protected:
  Client wired(Duration call_timeout = 600ms) {
    return Client(std::make_unique<Wired>(store().open(), wire_, call_timeout));
  }
  Lease take(const Client& locks, Mode mode) {
    const RwLock lock(locks, "r", {.ttl = 600s});
    return mode == Mode::shared ? lock.read() : lock.write();
  }
  static bool change(Lease& lease) {
    return lease.mode() == Mode::shared ? lease.try_upgrade() : lease.downgrade();
  }
  /// What a rival can take at once, while the lease is held.
  bool another_writes() { return static_cast<bool>(RwLock(rival_, "r").try_write()); }
  bool another_reads() { return static_cast<bool>(RwLock(rival_, "r").try_read()); }

  static constexpr std::array kLosses = {Fate::fail, Fate::swallow, Fate::silence, Fate::mute};
  std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
  Client rival_ = client();
};
INSTANTIATE_TEST_SUITE_P(, ChangesInDoubt, testing::ValuesIn(stores()), store_name);

TEST_P(ChangesInDoubt, ADowngradeIsAskedForAgainWhenItsAnswerIsLost) {
  COVERS(Rule<1>, Rule<9>);
  const auto locks = wired();
  for (const auto fate : kLosses) {
    auto lease = take(locks, Mode::exclusive);
    wire_->once(Kind::acquire, fate);
    EXPECT_TRUE(lease.downgrade());
    EXPECT_EQ(lease.mode(), Mode::shared);
    EXPECT_TRUE(lease);
    EXPECT_FALSE(another_writes());
    EXPECT_TRUE(another_reads());
    EXPECT_EQ(look("r").holders.at(0).owner, lease.owner());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(nothing_left());
  }
}

TEST_P(ChangesInDoubt, AnUpgradeWhoseAnswerIsLostEndsShared) {
  COVERS(Rule<1>, Rule<9>, Rule<10>);
  const auto locks = wired();
  for (const auto fate : kLosses) {
    auto lease = take(locks, Mode::shared);
    const auto fence = lease.traits().fences ? lease.fence() : Fence{};
    wire_->once(Kind::acquire, fate);
    EXPECT_THROW(static_cast<void>(lease.try_upgrade()), Error);
    EXPECT_TRUE(lease);
    EXPECT_EQ(lease.mode(), Mode::shared);
    EXPECT_FALSE(another_writes());
    EXPECT_TRUE(another_reads());
    EXPECT_TRUE(eventually([&] { return look("r").holders.at(0).owner == lease.owner(); }));
    if (lease.traits().fences) {
      EXPECT_GE(lease.fence(), fence);
    }
    EXPECT_TRUE(lease.try_upgrade()) << "it can be tried again";
    EXPECT_FALSE(another_reads());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(eventually([&] { return nothing_left(); }));
  }
}

TEST_P(ChangesInDoubt, WhileNobodyAnswersItIsHeldAndLaterItIsSettled) {
  COVERS(Rule<1>, Rule<9>, Rule<10>);
  const auto locks = wired();
  for (const auto from : {Mode::exclusive, Mode::shared}) {
    for (const auto fate : kLosses) {
      auto lease = take(locks, from);
      wire_->set(Kind::acquire, fate);
      try {
        (void)change(lease);
        FAIL() << "nobody answered";
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::unreachable);
        EXPECT_TRUE(error.maybe_held());
        EXPECT_EQ(error.resource(), "r");
      }
      EXPECT_TRUE(lease);
      EXPECT_EQ(lease.mode(), Mode::shared) << "more is not certain";
      EXPECT_FALSE(another_writes());
      EXPECT_TRUE(lease);
      wire_->set(Kind::acquire, Fate::pass);
      EXPECT_TRUE(eventually([&] { return another_reads(); })) << "settled in the background";
      EXPECT_FALSE(another_writes());
      EXPECT_TRUE(lease.extend(600s));
      EXPECT_EQ(look("r").holders.at(0).owner, lease.owner());
      EXPECT_EQ(look("r").holders.at(0).mode, Mode::shared);
      EXPECT_EQ(lease.release(), LeaseState::released);
      EXPECT_TRUE(eventually([&] { return nothing_left(); }));
    }
  }
}

TEST_P(ChangesInDoubt, ReleasedMeanwhileItLeavesNothingBehind) {
  COVERS(Rule<8>, Rule<9>);
  const auto locks = wired();
  enum class How { release, asynchronous, destructor };
  for (const auto from : {Mode::exclusive, Mode::shared}) {
    for (const auto fate : {Fate::swallow, Fate::fail}) {
      for (const auto how : {How::release, How::asynchronous, How::destructor}) {
        auto lease = take(locks, from);
        wire_->set(Kind::acquire, fate);
        EXPECT_THROW(static_cast<void>(change(lease)), Error);
        std::promise<LeaseState> ended;
        if (how == How::release) {
          EXPECT_EQ(lease.release(), LeaseState::released);
        } else if (how == How::asynchronous) {
          lease.async_release([&](LeaseState state) { ended.set_value(state); });
          EXPECT_EQ(ended.get_future().get(), LeaseState::released);
        } else {
          lease = Lease();
        }
        EXPECT_TRUE(nothing_left());
        wire_->set(Kind::acquire, Fate::pass);
      }
    }
  }
}

TEST_P(ChangesInDoubt, AnUpgradeThatIsGrantedAsItGivesUpIsSharedAgain) {
  COVERS(Rule<1>, Rule<9>);
  const auto locks = wired(kPatience);
  bool granted_late = false;
  for (Duration limit = 500ms; !granted_late && limit < kPatience; limit *= 2) {
    auto lease = take(locks, Mode::shared);
    auto other = RwLock(rival_, "r").read();
    auto upgrading = std::async(std::launch::async, [&] { return lease.try_upgrade_for(limit); });
    const auto over = [&] { return upgrading.wait_for(0s) == std::future_status::ready; };
    ASSERT_TRUE(eventually([&] { return over() || waiters("r") == 1; }));
    const auto late_from = BootClock::now();
    wire_->set(Kind::acquire, Fate::hold);
    other.release();
    // Granted, and nobody knows: before it gave up, so that what it asks then is answered.
    ASSERT_TRUE(eventually([&] {
      const auto all = look("r").holders;
      granted_late = all.size() == 1 && all[0].mode == Mode::exclusive;
      return granted_late || over() || BootClock::now() > late_from + limit / 2;
    }));
    wire_->set(Kind::acquire, Fate::pass);
    granted_late = granted_late && wire_->held_back() > 0 && !over();
    if (!granted_late) wire_->deliver();
    const bool upgraded = upgrading.get();
    if (granted_late) {
      EXPECT_FALSE(upgraded);
      EXPECT_TRUE(lease);
      EXPECT_EQ(lease.mode(), Mode::shared);
      EXPECT_FALSE(another_writes());
      EXPECT_TRUE(another_reads());
      wire_->deliver();
      EXPECT_FALSE(another_writes());
    }
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(eventually([&] { return nothing_left(); }));
  }
  EXPECT_TRUE(granted_late) << "never slow enough";
}

TEST_P(ChangesInDoubt, ARefusedUpgradeOfSeveralLeavesAllOfThemShared) {
  COVERS(Rule<1>, Rule<2>);
  const auto locks = wired();
  const std::vector<std::string> names = {"r1", "r2", "r3", "r4", "r5"};
  auto lease =
      MultiLock(locks, {shared("r1"), shared("r2"), shared("r3"), shared("r4"), shared("r5")})
          .acquire();
  for (const auto& name : names) {
    const auto other = RwLock(rival_, name).read();
    EXPECT_FALSE(lease.try_upgrade());
    EXPECT_FALSE(lease.try_upgrade_for(50ms));
    EXPECT_TRUE(lease);
    for (const auto& each : names) {
      EXPECT_FALSE(RwLock(rival_, each).try_write()) << each;
      EXPECT_TRUE(RwLock(rival_, each).try_read()) << each;
      EXPECT_EQ(lease.mode(each), Mode::shared);
    }
    EXPECT_TRUE(lease.extend(30s));
  }
  EXPECT_TRUE(eventually([&] { return lease.try_upgrade(); }));
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(ChangesInDoubt, AChangeTakesAwayNoTimeThatWasGiven) {
  COVERS(Rule<6>);
  auto lease = RwLock(client(), "r", {.ttl = 60s, .renew = false}).write();
  ASSERT_TRUE(lease.extend(5s));
  ASSERT_GT(lease.time_remaining(), 30s);
  ASSERT_TRUE(lease.downgrade());
  EXPECT_GT(lease.time_remaining(), 30s);
  // In this order, as a look may take a while: what the store showed first is not less than what is left later.
  const auto remaining = look("r").holders.at(0).remaining;
  EXPECT_GE(remaining + 10ms, lease.time_remaining());
  EXPECT_EQ(lease.ttl(), 5s);
}

TEST_P(ChangesInDoubt, AtTheSeamAWishCanBeSettledForLess) {
  COVERS(Rule<9>);
  Seam seam(store().open());
  const auto me = claim_of({shared("r")});
  const auto other = claim_of({shared("r")});
  const auto stronger = instead_of(me, {exclusive("r")});
  ASSERT_EQ(seam.acquire(me).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(other).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(stronger).verdict, Verdict::queued);
  EXPECT_EQ(seam.try_acquire(changed(stronger, {shared("r")})).verdict, Verdict::granted);
  EXPECT_EQ(waiters("r"), 0U);
  EXPECT_EQ(seam.renew(me).verdict, Verdict::lost);
  EXPECT_EQ(seam.try_acquire(stronger).verdict, Verdict::granted) << "a late copy changes nothing";
  EXPECT_EQ(seam.try_acquire(claim_of({shared("r")})).verdict, Verdict::granted);
}

TEST_P(ChangesInDoubt, AtTheSeamWhatGetsNoStrongerWaitsForNobody) {
  COVERS(Rule<3>);
  Seam seam(store().open());
  const auto me = claim_of({exclusive("b"), shared("a")});
  const auto other = claim_of({shared("a")});
  ASSERT_EQ(seam.acquire(me).verdict, Verdict::granted);
  ASSERT_EQ(seam.acquire(other).verdict, Verdict::granted);
  const auto wish = instead_of(other, {exclusive("a")});
  ASSERT_EQ(seam.acquire(wish).verdict, Verdict::queued);
  const auto weaker = claim_of({shared("a"), shared("b")});
  auto takes_over = weaker;
  takes_over.instead_of = me.owner;
  EXPECT_EQ(seam.try_acquire(takes_over).verdict, Verdict::granted);
  EXPECT_EQ(seam.release(takes_over).verdict, Verdict::granted);
  EXPECT_EQ(seam.acquire(wish).verdict, Verdict::granted);
}

}  // namespace
}  // namespace interlock::conformance
