// Rules 9 and 10: a lost reply is settled by asking again, what was given up is cleaned up, and the
// five answers are never mistaken for each other.
#include <atomic>
#include <future>
#include <optional>

#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

class Doubt : public Conformance {
 protected:
  /// A client whose calls the test can meddle with.
  /// Long enough for a server of a busy machine.
  Client wired(Duration call_timeout = 600ms) {
    return Client(std::make_unique<Wired>(store().open(), wire_, call_timeout),
                  {.release_timeout = 600ms});
  }

  static constexpr Retry kQuick{.attempts = 3, .first = 5ms, .max = 10ms};
  std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
};
INSTANTIATE_TEST_SUITE_P(, Doubt, testing::ValuesIn(stores()), store_name);

TEST_P(Doubt, AcquireIsIdempotentPerOwner) {
  COVERS(Rule<9>);
  Seam seam(store().open());
  const auto claim = claim_of("r");
  const auto first = seam.acquire(claim);
  ASSERT_EQ(first.verdict, Verdict::granted);
  for (int i = 0; i < 3; ++i) {
    const auto again = i == 0 ? seam.try_acquire(claim) : seam.acquire(claim);
    EXPECT_EQ(again.verdict, Verdict::granted);
    EXPECT_EQ(again.fences, first.fences);
  }
  EXPECT_EQ(holders("r"), 1U);
  seam.release(claim);
  EXPECT_TRUE(nothing_left()) << "acquired often, released once";
}

TEST_P(Doubt, ALostReplyIsSettledByAskingAgain) {
  COVERS(Rule<9>);
  const auto locks = wired();
  for (const auto fate : {Fate::swallow, Fate::mute, Fate::fail}) {
    wire_->once(Kind::acquire, fate);
    auto lease = Mutex(locks, "r", {.retry = kQuick}).acquire();
    EXPECT_EQ(holders("r"), 1U);
    EXPECT_EQ(look("r").holders.at(0).owner, lease.owner());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(nothing_left());
  }
}

TEST_P(Doubt, ALostReplyToAWaiterIsSettledToo) {
  COVERS(Rule<9>);
  const auto locks = wired();
  auto held = Mutex(client(), "r").acquire();
  wire_->once(Kind::acquire, Fate::swallow);
  auto waiting = queue_up(Mutex(locks, "r", {.retry = kQuick}));
  EXPECT_EQ(waiters("r"), 1U);
  wire_->once(Kind::acquire, Fate::swallow);  // and the grant's
  held.release();
  EXPECT_TRUE(waiting.lease());
}

TEST_P(Doubt, AGrantThatArrivesAfterTheCallerGaveUpIsGivenBack) {
  COVERS(Rule<9>);
  const auto locks = wired(kPatience);
  wire_->once(Kind::acquire, Fate::hold);
  Waiting waiting(Mutex(locks, "r"));
  ASSERT_TRUE(eventually([&] { return wire_->held_back() == 1; }));
  EXPECT_EQ(holders("r"), 1U);
  waiting.cancel();
  EXPECT_EQ(waiting.attempt().outcome(), Outcome::cancelled);
  wire_->deliver();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Doubt, WhatIsDoneAfterItsCallerWasToldUnreachableIsGivenBack) {
  COVERS(Rule<9>, Rule<10>);
  const auto locks = wired(100ms);
  for (const bool taken : {false, true}) {
    for (const auto fate : {Fate::late, Fate::late_swallow}) {
      std::optional<Lease> other;
      if (taken) other = Mutex(client(), "r").acquire();
      const auto releases = wire_->calls(Kind::release);
      wire_->set(Kind::acquire, fate);
      const Options lasting{.ttl = 600s, .retry = Retry::none()};
      EXPECT_THROW(static_cast<void>(Mutex(locks, "r", lasting).acquire()), Error);
      // It is cleaned up, and then it arrives.
      ASSERT_TRUE(eventually([&] { return wire_->calls(Kind::release) > releases; }));
      wire_->set(Kind::acquire, Fate::pass);
      wire_->deliver();
      EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
      if (other) {
        EXPECT_EQ(other->release(), LeaseState::released);
      }
      ASSERT_TRUE(eventually([&] { return nothing_left(); }));
    }
  }
}

TEST_P(Doubt, AGrantWhoseReplyNeverCameIsGivenBack) {
  COVERS(Rule<9>);
  const auto locks = wired();
  wire_->set(Kind::acquire, Fate::mute);
  EXPECT_FALSE([&] {
    try {
      return static_cast<bool>(Mutex(locks, "r", {.retry = kQuick}).try_acquire_for(200ms));
    } catch (const Error&) {
      return false;
    }
  }());
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Doubt, CleaningUpIsTriedAgainWhenItFails) {
  COVERS(Rule<9>);
  const auto locks = wired();
  const auto held = Mutex(client(), "r").acquire();
  wire_->once(Kind::release, Fate::fail);
  EXPECT_EQ(Mutex(locks, "r").try_acquire_for(100ms).outcome(), Outcome::timed_out);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 0; }));
}

TEST_P(Doubt, ATokenThatIsStoppedAlreadyAsksNothing) {
  COVERS(Rule<9>);
  const auto locks = wired();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Mutex(locks, "r").try_acquire_for(10s, stop.get_token()).outcome(), Outcome::cancelled);
  EXPECT_THROW(static_cast<void>(Mutex(locks, "r").acquire(stop.get_token())), Error);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Doubt, FiveAnswersAreToldApart) {
  COVERS(Rule<10>);
  const auto locks = wired();
  const Mutex mutex(locks, "r", {.ttl = 3s, .retry = kQuick});
  auto lease = mutex.acquire();                                           // granted
  EXPECT_EQ(mutex.try_acquire().outcome(), Outcome::busy);                // busy
  EXPECT_EQ(mutex.try_acquire_for(100ms).outcome(), Outcome::timed_out);  // timed out
  store().break_hold("r");
  EXPECT_FALSE(lease.extend(3s));  // lost
  EXPECT_EQ(lease.state(), LeaseState::lost);
  wire_->set_all(Fate::fail);
  try {  // and unreachable
    static_cast<void>(mutex.acquire());
    FAIL() << "nobody answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_TRUE(error.retryable());
    EXPECT_EQ(error.resource(), "r");
    EXPECT_FALSE(error.node().empty());
    EXPECT_NE(std::string(error.what()).find("r"), std::string::npos);
  }
}

TEST_P(Doubt, AnUnreachableStoreIsNotBusyAndNotATimeout) {
  COVERS(Rule<10>);
  const auto locks = wired(50ms);
  for (const auto fate : {Fate::fail, Fate::silence}) {
    wire_->set_all(fate);
    const Mutex mutex(locks, "r", {.retry = Retry::none()});
    for (const auto once : {true, false}) {
      try {
        const auto attempt = once ? mutex.try_acquire() : mutex.try_acquire_for(kPatience);
        FAIL() << "the store was cut off, and the answer was " << to_string(attempt.outcome());
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      }
    }
  }
  EXPECT_THROW(static_cast<void>(locks.inspect()), Error);
}

TEST_P(Doubt, InDoubtIsSaid) {
  COVERS(Rule<10>);
  const auto locks = wired();
  wire_->set_all(Fate::swallow);
  try {
    static_cast<void>(Mutex(locks, "r", {.retry = Retry::none()}).try_acquire());
    FAIL() << "no answer arrived";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_TRUE(error.maybe_held());
  }
}

TEST_P(Doubt, AnExtensionThatFailsSaysSoAndTheLeaseLivesOn) {
  COVERS(Rule<10>);
  const auto locks = wired();
  auto lease = Mutex(locks, "r", {.retry = Retry::none()}).acquire();
  wire_->set(Kind::renew, Fate::fail);
  EXPECT_THROW(static_cast<void>(lease.extend(60s)), Error);
  EXPECT_TRUE(lease);
  wire_->set(Kind::renew, Fate::pass);
  EXPECT_TRUE(lease.extend(60s));
}

TEST_P(Doubt, ARenewalInDoubtEndsNoLeaseThatIsValid) {
  COVERS(Rule<7>, Rule<10>);
  const auto locks = wired();
  for (const auto fate : {Fate::fail, Fate::swallow, Fate::silence, Fate::mute}) {
    auto lease = Mutex(locks, "r", {.ttl = 6s}).acquire();
    const auto lost = lease.lost();
    const auto before = wire_->calls(Kind::renew);
    wire_->set(Kind::renew, fate);
    ASSERT_TRUE(eventually([&] { return wire_->calls(Kind::renew) >= before + 2; }));
    EXPECT_TRUE(lease);
    EXPECT_FALSE(Mutex(client(), "r").try_acquire());
    const auto valid = lease.valid_until();
    wire_->set(Kind::renew, Fate::pass);
    EXPECT_TRUE(eventually([&] { return lease.valid_until() > valid || !lease; }));
    EXPECT_TRUE(lease);
    EXPECT_FALSE(lost.stop_requested());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(nothing_left());
  }
}

TEST_P(Doubt, ARenewalThatIsUnderWayAtTheReleaseBringsNothingBack) {
  COVERS(Rule<8>);
  const auto locks = wired();
  auto lease = Mutex(locks, "r", {.ttl = 900ms}).acquire();
  wire_->set(Kind::renew, Fate::late);
  ASSERT_TRUE(eventually([&] { return wire_->held_back() > 0; }));
  EXPECT_EQ(lease.release(), LeaseState::released);
  wire_->set(Kind::renew, Fate::pass);
  wire_->deliver();
  EXPECT_TRUE(nothing_left());
  auto next = Mutex(client(), "r").acquire();
  EXPECT_TRUE(next.extend(30s));
  EXPECT_EQ(lease.state(), LeaseState::released);
  EXPECT_EQ(next.release(), LeaseState::released);
  EXPECT_TRUE(nothing_left());
}

TEST_P(Doubt, AtTheSeamARenewalNeverOutrunsARelease) {
  COVERS(Rule<8>);
  Seam seam(store().open());
  for (int i = 0; i < 20; ++i) {
    const auto claim = claim_of({exclusive("r"), shared("s")});
    ASSERT_EQ(seam.acquire(claim).verdict, Verdict::granted);
    std::atomic<bool> over = false;
    const auto renew = [&] {
      while (!over) seam.renew(claim);
    };
    {
      const auto one = std::async(std::launch::async, renew);
      const auto another = std::async(std::launch::async, renew);
      EXPECT_EQ(seam.release(claim).verdict, Verdict::granted);
      over = true;
    }
    EXPECT_EQ(seam.renew(claim).verdict, Verdict::lost);
    EXPECT_TRUE(eventually([&] { return nothing_left(); }));
  }
}

TEST_P(Doubt, AReleaseThatWasDoneButNotHeardOfIsARelease) {
  COVERS(Rule<7>, Rule<10>);
  const auto locks = wired(kPatience);
  for (const bool waits : {true, false}) {
    auto lease = Mutex(locks, "r").acquire();
    const auto lost = lease.lost();
    wire_->once(Kind::release, Fate::swallow);
    std::promise<LeaseState> ended;
    if (waits) {
      ended.set_value(lease.release());
    } else {
      lease.async_release([&](LeaseState state) { ended.set_value(state); });
    }
    EXPECT_EQ(ended.get_future().get(), LeaseState::released);
    EXPECT_EQ(lease.state(), LeaseState::released);
    EXPECT_FALSE(lost.stop_requested());
    EXPECT_TRUE(nothing_left());
  }
}

TEST_P(Doubt, AReleaseThatFailsSaysSoAndIsTriedAgain) {
  COVERS(Rule<10>, Rule<8>);
  const auto locks = wired();
  auto lease = Mutex(locks, "r").acquire();
  wire_->set(Kind::release, Fate::fail);
  try {
    lease.release();
    FAIL() << "said released, and nobody confirmed it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
  }
  wire_->set(Kind::release, Fate::pass);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::conformance
