// The engine on the memory store with a manual clock: renewal, loss and waiting as time passes, and
// with a store that can be told to fall silent.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include "core/engine.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;
using namespace std::chrono_literals;

namespace {

// Real time, generously, for what another thread does at once.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class Recorder final : public Observer {
 public:
  void on(const Observation& o) noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_[o.event];
    if (o.error != nullptr) last_error_ = o.error->what();
  }
  int count(Event event) {
    const std::lock_guard lock(mutex_);
    return counts_[event];
  }
  std::string last_error() {
    const std::lock_guard lock(mutex_);
    return last_error_;
  }

 private:
  std::mutex mutex_;
  std::map<Event, int> counts_;
  std::string last_error_;
};

struct EngineTest : testing::Test {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Recorder> seen = std::make_shared<Recorder>();
  MemoryStore store{clock};
  Client client{store.open(), {.observer = seen, .clock = clock}};
  Client other{store.open(), {.clock = clock}};

  // Lets time pass in small steps, and the keeper see each of them.
  void pass(Duration time, Duration step = 1s) {
    for (; time > Duration::zero(); time -= step) {
      const int before = seen->count(Event::renewed);
      clock->advance(step);
      // A keeper that has something to do does it within a moment.
      for (int i = 0; i < 20 && seen->count(Event::renewed) == before; ++i)
        std::this_thread::sleep_for(100us);
    }
  }
};

TEST_F(EngineTest, ALeaseRenewsItselfEveryThirdOfItsTtl) {
  Mutex mutex(client, "k", {.ttl = 30s});
  auto lease = mutex.acquire();
  const auto first = lease.valid_until();
  clock->advance(10s);
  EXPECT_TRUE(soon([&] { return seen->count(Event::renewed) == 1; }));
  EXPECT_EQ(lease.valid_until(), first + 10s);
  clock->advance(10s);
  EXPECT_TRUE(soon([&] { return seen->count(Event::renewed) == 2; }));
  EXPECT_FALSE(Mutex(other, "k").try_acquire());
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_EQ(seen->count(Event::released), 1);
}

TEST_F(EngineTest, WithoutRenewalItIsLostByTheClockAndTheTokenFires) {
  Mutex mutex(client, "k", {.ttl = 30s, .renew = false});
  auto lease = mutex.acquire();
  const auto lost = lease.lost();
  clock->advance(29s);
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_FALSE(lost.stop_requested());
  clock->advance(1s);
  EXPECT_EQ(lease.state(), LeaseState::lost) << "known at once, by the clock";
  EXPECT_TRUE(soon([&] { return lost.stop_requested(); }));
  EXPECT_EQ(lease.time_remaining(), Duration::zero());
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(Mutex(other, "k").try_acquire());
}

TEST_F(EngineTest, ANormalReleaseNeverFiresLost) {
  Mutex mutex(client, "k", {.ttl = 30s});
  auto lease = mutex.acquire();
  const auto lost = lease.lost();
  lease.release();
  clock->advance(1h);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(lease.state(), LeaseState::released);
}

TEST_F(EngineTest, ReleasingWhatIsLostSaysSoAndFiresTheToken) {
  auto ended = Mutex(client, "a", {.ttl = 30s, .renew = false}).acquire();
  auto broken = Mutex(client, "b", {.ttl = 30s}).acquire();
  const auto ended_token = ended.lost();
  const auto broken_token = broken.lost();
  clock->advance(31s);
  EXPECT_EQ(ended.release(), LeaseState::lost);
  EXPECT_TRUE(soon([&] { return ended_token.stop_requested(); }));
  (void)broken.release();
  EXPECT_TRUE(
      soon([&] { return broken_token.stop_requested() == (broken.state() == LeaseState::lost); }));
}

TEST_F(EngineTest, AskingForTheTokenAfterTheLossGivesAStoppedOne) {
  auto lease = Mutex(client, "k", {.ttl = 30s, .renew = false}).acquire();
  clock->advance(31s);
  EXPECT_TRUE(soon([&] { return seen->count(Event::lost) == 1; }));
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_F(EngineTest, AnEvictedHolderKnowsAtOnce) {
  auto lease = Mutex(client, "k", {.ttl = 30s}).acquire();
  const auto lost = lease.lost();
  const auto state = other.inspect({.resources = {"k"}});
  EXPECT_TRUE(other.evict("k", state.resources.at(0).holders.at(0).owner));
  EXPECT_TRUE(soon([&] { return lost.stop_requested(); })) << "no time passed";
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_FALSE(other.evict("k", Owner::random()));
}

TEST_F(EngineTest, MaxHoldEndsAHolderThatHangs) {
  auto lease = Mutex(client, "k", {.ttl = 30s, .max_hold = 1min}).acquire();
  pass(50s);
  EXPECT_EQ(lease.state(), LeaseState::held);
  pass(60s);
  EXPECT_TRUE(soon([&] { return lease.state() == LeaseState::lost; }));
  EXPECT_NE(lease.lost_reason().find("max_hold"), std::string::npos);
}

TEST_F(EngineTest, ABoundedWaitEndsWithTheClock) {
  auto held = Mutex(other, "k", {.ttl = 1h}).acquire();
  auto waiting =
      std::async(std::launch::async, [&] { return Mutex(client, "k").try_acquire_for(5s); });
  EXPECT_TRUE(soon([&] { return seen->count(Event::queued) == 1; }));
  clock->advance(5s);
  const auto attempt = waiting.get();
  EXPECT_EQ(attempt.outcome(), Outcome::timed_out);
  EXPECT_EQ(attempt.waited(), 5s);
  EXPECT_NE(std::string(attempt.error().what()).find("'k'"), std::string::npos);
  EXPECT_TRUE(
      soon([&] { return client.inspect({.resources = {"k"}}).resources.at(0).waiters.empty(); }));
}

TEST_F(EngineTest, AWaiterGetsItWhenAnUnrenewedHolderExpires) {
  auto held = Mutex(other, "k", {.ttl = 3s, .renew = false}).acquire();
  auto waiting = std::async(std::launch::async, [&] { return Mutex(client, "k").acquire(); });
  EXPECT_TRUE(soon([&] { return seen->count(Event::queued) == 1; }));
  clock->advance(3s);
  auto lease = waiting.get();
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_GT(lease.fence(), held.fence());
}

TEST_F(EngineTest, CancellingAWaitLeavesTheQueue) {
  auto held = Mutex(other, "k").acquire();
  std::stop_source stop;
  auto waiting = std::async(
      std::launch::async, [&] { return Mutex(client, "k").try_acquire_for(1h, stop.get_token()); });
  EXPECT_TRUE(soon([&] { return seen->count(Event::queued) == 1; }));
  stop.request_stop();
  EXPECT_EQ(waiting.get().outcome(), Outcome::cancelled);
  EXPECT_TRUE(
      soon([&] { return client.inspect({.resources = {"k"}}).resources.at(0).waiters.empty(); }));
  EXPECT_THROW((void)Mutex(client, "k").acquire(stop.get_token()), Error);
}

TEST_F(EngineTest, ExtendMovesTheLeasesOwnTimes) {
  auto lease = Mutex(client, "k", {.ttl = 2s, .renew = false}).acquire();
  clock->advance(1500ms);
  EXPECT_TRUE(lease.extend(5s));
  EXPECT_EQ(lease.ttl(), 5s);
  clock->advance(1s);
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_GT(lease.time_remaining(), 3s);
  clock->advance(5s);
  EXPECT_FALSE(lease.extend(5s));
  EXPECT_THROW(lease.extend(0s), Error);
}

TEST_F(EngineTest, ALeaseOutlivesTheClientObjectAndTheLock) {
  std::optional<Lease> lease;
  {
    Client short_lived(store.open(), {.clock = clock});
    lease = Mutex(short_lived, "k").acquire();
  }
  EXPECT_EQ(lease->state(), LeaseState::held);
  lease.reset();
  EXPECT_TRUE(Mutex(other, "k").try_acquire());
}

TEST_F(EngineTest, AMovedFromLeaseHoldsNothingAndAMovedOverOneIsReleased) {
  auto a = Mutex(client, "a").acquire();
  auto b = Mutex(client, "b").acquire();
  b = std::move(a);
  EXPECT_EQ(a.state(), LeaseState::released);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW((void)a.fence(), Error);
  EXPECT_EQ(b.resource(), "a");
  EXPECT_TRUE(Mutex(other, "b").try_acquire());
  EXPECT_FALSE(Mutex(other, "a").try_acquire());
}

TEST_F(EngineTest, CallbacksRunOnTheExecutorThatWasGiven) {
  std::vector<std::function<void()>> posted;
  std::mutex mutex;
  Client mine(store.open(), {.clock = clock, .executor = [&](std::function<void()> f) {
                               const std::lock_guard lock(mutex);
                               posted.push_back(std::move(f));
                             }});
  std::optional<Attempt> result;
  Mutex(mine, "k").acquire(Wait::once(), [&](Attempt a) { result.emplace(std::move(a)); });
  EXPECT_TRUE(soon([&] {
    const std::lock_guard lock(mutex);
    return posted.size() == 1;
  }));
  EXPECT_FALSE(result);
  posted[0]();
  EXPECT_TRUE(*result);
}

TEST_F(EngineTest, TheLastReferenceMayGoInACallback) {
  std::promise<void> done;
  {
    auto mine = std::make_shared<Client>(store.open(), ClientOptions{});
    Mutex(*mine, "k").acquire(Wait::once(), [&done, mine](Attempt a) mutable {
      { const auto lease = std::move(*std::move(a)); }
      mine.reset();
      done.set_value();
    });
  }
  done.get_future().wait();
}

// Falls silent on command: calls are swallowed.
class Mute final : public Backend {
 public:
  Mute(std::unique_ptr<Backend> inner, std::shared_ptr<std::atomic<bool>> mute)
      : inner_(std::move(inner)), mute_(std::move(mute)) {}
  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& c, bool queue, Call call, Reply r) override {
    if (!*mute_) inner_->acquire(c, queue, call, std::move(r));
  }
  void renew(const Claim& c, Call call, Reply r) override {
    if (!*mute_) inner_->renew(c, call, std::move(r));
  }
  void release(const Claim& c, Call call, Reply r) override {
    if (!*mute_) inner_->release(c, call, std::move(r));
  }
  void inspect(const Query& q, Call call, Report r) override {
    inner_->inspect(q, call, std::move(r));
  }
  void on_wake(WakeSink sink) override { inner_->on_wake(std::move(sink)); }

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<std::atomic<bool>> mute_;
};

struct MuteTest : EngineTest {
  std::shared_ptr<std::atomic<bool>> mute = std::make_shared<std::atomic<bool>>(false);
  Client remote{std::make_unique<Mute>(store.open(), mute), {.observer = seen, .clock = clock}};
};

TEST_F(MuteTest, LossIsToldWithNoNetworkAtAll) {
  auto lease = Mutex(remote, "k", {.ttl = 30s}).acquire();
  const auto lost = lease.lost();
  *mute = true;
  clock->advance(29s);
  EXPECT_EQ(lease.state(), LeaseState::held);
  clock->advance(1s);
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_TRUE(soon([&] { return lost.stop_requested(); }));
  *mute = false;
}

TEST_F(MuteTest, ARenewalWithoutAnAnswerIsToldWhenItIsAskedAgainAndNothingAfterTheLoss) {
  auto lease = Mutex(remote, "k", {.ttl = 30s}).acquire();
  *mute = true;
  clock->advance(10s);  // renew; there is no answer
  EXPECT_TRUE(soon([&] {
    clock->advance(100ms);
    return seen->count(Event::renewal_failed) >= 1;
  }));
  EXPECT_EQ(lease.state(), LeaseState::held) << "told in time";
  clock->advance(30s);
  EXPECT_TRUE(soon([&] { return seen->count(Event::lost) == 1; }));
  const auto told = seen->count(Event::renewal_failed);
  *mute = false;
  clock->advance(30s);
  EXPECT_EQ(seen->count(Event::renewal_failed), told);
  EXPECT_EQ(seen->count(Event::renewed), 0U);
}

// A renewal gets to the store only behind the release that came after it.
class Overtaking final : public Backend {
 public:
  explicit Overtaking(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& c, bool queue, Call call, Reply r) override {
    inner_->acquire(c, queue, call, std::move(r));
  }
  void renew(const Claim& c, Call call, Reply r) override {
    const std::lock_guard lock(mutex_);
    renewal_ = [this, c, call, r = std::move(r)] { inner_->renew(c, call, r); };
    ++renewals;
  }
  void release(const Claim& c, Call call, Reply r) override {
    inner_->release(c, call, [this, r = std::move(r)](const Answer& answer) {
      std::unique_lock lock(mutex_);
      if (auto renewal = std::exchange(renewal_, nullptr)) {
        lock.unlock();
        renewal();
      }
      r(answer);
    });
  }
  void inspect(const Query& q, Call call, Report r) override {
    inner_->inspect(q, call, std::move(r));
  }
  void on_wake(WakeSink sink) override { inner_->on_wake(std::move(sink)); }

  std::atomic<int> renewals = 0;

 private:
  std::unique_ptr<Backend> inner_;
  std::mutex mutex_;
  std::function<void()> renewal_;
};

/// Answers at once, says that nothing is held any more if it is told to, and wakes a waiter that has just given up at each
/// release.
class WakesTheGone final : public Backend {
 public:
  WakesTheGone(std::unique_ptr<Backend> inner, std::shared_ptr<std::atomic<bool>> gone)
      : inner_(std::move(inner)), gone_(std::move(gone)) {}
  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& c, bool queue, Call call, Reply r) override {
    inner_->acquire(c, queue, call, std::move(r));
  }
  void renew(const Claim& c, Call call, Reply r) override {
    if (*gone_) return r({.verdict = Verdict::lost});
    inner_->renew(c, call, std::move(r));
  }
  void release(const Claim& c, Call call, Reply r) override {
    inner_->release(c, call, std::move(r));
    sink_(Owner::random());
  }
  void inspect(const Query& q, Call call, Report r) override {
    inner_->inspect(q, call, std::move(r));
  }
  void on_wake(WakeSink sink) override {
    sink_ = sink;
    inner_->on_wake(std::move(sink));
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<std::atomic<bool>> gone_;
  WakeSink sink_;
};

TEST_F(EngineTest, ALossThatFreesALockMayWakeAWaiterThatHasGivenUp) {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  Client quick{std::make_unique<WakesTheGone>(store.open(), gone),
               {.observer = seen, .clock = clock}};
  auto first = Mutex(quick, "first", {.ttl = 30s}).acquire();
  auto second = Mutex(quick, "second", {.ttl = 30s}).acquire();
  *gone = true;
  clock->advance(10s);
  EXPECT_TRUE(soon([&] { return first.lost().stop_requested(); }));
  EXPECT_TRUE(soon([&] { return second.lost().stop_requested(); })) << "the client goes on";
}

TEST_F(EngineTest, ARenewalThatTheReleaseOvertookIsNoLoss) {
  auto backend = std::make_unique<Overtaking>(store.open());
  const auto& renewals = backend->renewals;
  Client slow{std::move(backend), {.observer = seen, .clock = clock}};
  auto lease = Mutex(slow, "k", {.ttl = 30s}).acquire();
  const auto lost = lease.lost();
  clock->advance(10s);
  ASSERT_TRUE(soon([&] { return renewals == 1; }));
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_EQ(lease.state(), LeaseState::released);
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(seen->count(Event::released), 1);
  EXPECT_EQ(seen->count(Event::lost), 0);
}

TEST_F(MuteTest, ARenewalThatSucceedsInTimeIsNoLoss) {
  auto lease = Mutex(remote, "k", {.ttl = 30s}).acquire();
  *mute = true;
  clock->advance(20s);
  std::this_thread::sleep_for(5ms);
  *mute = false;
  clock->advance(6s);
  EXPECT_TRUE(soon([&] { return seen->count(Event::renewed) >= 1; }));
  EXPECT_EQ(lease.state(), LeaseState::held);
}

TEST_F(MuteTest, ASilentStoreIsUnreachableNotBusyAndDestructorsAreBounded) {
  auto lease = std::make_optional(Mutex(remote, "a").acquire());
  *mute = true;
  auto attempt = std::async(std::launch::async, [&] {
    try {
      (void)Mutex(remote, "k").try_acquire();
      return Errc::busy;
    } catch (const Error& e) {
      EXPECT_TRUE(e.retryable());
      EXPECT_TRUE(e.maybe_held());
      EXPECT_EQ(e.resource(), "k");
      return e.errc();
    }
  });
  auto destroyed = std::async(std::launch::async, [&] { lease.reset(); });
  while (attempt.wait_for(1ms) != std::future_status::ready ||
         destroyed.wait_for(1ms) != std::future_status::ready) {
    clock->advance(200ms);
  }
  EXPECT_EQ(attempt.get(), Errc::unreachable);
  EXPECT_EQ(seen->count(Event::release_failed), 1);
  *mute = false;
  // What was in doubt is cleaned up in the background, well before the TTL.
  EXPECT_TRUE(soon([&] {
    clock->advance(100ms);
    return other.inspect().resources.empty();
  }));
}

TEST_F(EngineTest, AMarginEndsALeaseForItsHolderBeforeItEndsForTheStore) {
  auto lease = Mutex(client, "k", {.ttl = 30s, .margin = 5s, .renew = false}).acquire();
  const auto lost = lease.lost();
  clock->advance(24s);
  EXPECT_TRUE(lease);
  clock->advance(1s);
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_TRUE(soon([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(Mutex(other, "k").try_acquire()) << "there are five seconds to stop";
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(Mutex(other, "k").try_acquire()) << "whoever is done sooner says so";
}

TEST_F(EngineTest, AMarginThatLeavesNoTimeToRenewIsRefused) {
  EXPECT_NO_THROW(Mutex(client, "k", {.ttl = 30s, .margin = 10s}));
  EXPECT_THROW(Mutex(client, "k", {.ttl = 30s, .margin = 11s}), Error);
  EXPECT_THROW(Mutex(client, "k", {.ttl = 30s, .margin = -1s}), Error);
}

// The process ends, and with it its waiters; their threads still run for a moment.
TEST_F(EngineTest, AWaiterThatLeftAtExitAsksNoMore) {
  const auto engine = core::Engine::make(store.open(), {.observer = seen, .clock = clock});
  const auto held = Mutex(client, "r").acquire();
  std::atomic<bool> got{false};
  engine->acquire(engine->prepare({exclusive("r")}, {}), Wait::forever(),
                  [&](const Attempt& attempt) { got = static_cast<bool>(attempt); });
  ASSERT_TRUE(soon([&] { return seen->count(Event::queued) == 1; }));
  engine->at_exit();
  EXPECT_TRUE(client.inspect({.resources = {"r"}}).resources.at(0).waiters.empty());
  clock->advance(11s);  // a heartbeat would be due
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(client.inspect({.resources = {"r"}}).resources.at(0).waiters.empty());
  EXPECT_FALSE(got);
}

// Keeps the answer that grants to itself until it is told to give it.
class Withholding final : public Backend {
 public:
  struct Answers {
    bool withheld = true;
    std::atomic<int> releases = 0;
    std::mutex mutex;
    std::function<void()> give;
  };
  Withholding(std::unique_ptr<Backend> inner, std::shared_ptr<Answers> answers)
      : inner_(std::move(inner)), answers_(std::move(answers)) {}
  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& c, bool queue, Call call, Reply r) override {
    inner_->acquire(c, queue, call, [answers = answers_, r = std::move(r)](Answer answer) {
      if (!answers->withheld || answer.verdict != Verdict::granted) return r(std::move(answer));
      const std::lock_guard lock(answers->mutex);
      answers->give = [r, answer] { r(answer); };
    });
  }
  void renew(const Claim& c, Call call, Reply r) override { inner_->renew(c, call, std::move(r)); }
  void release(const Claim& c, Call call, Reply r) override {
    ++answers_->releases;
    inner_->release(c, call, std::move(r));
  }
  void inspect(const Query& q, Call call, Report r) override {
    inner_->inspect(q, call, std::move(r));
  }
  void on_wake(WakeSink sink) override { inner_->on_wake(std::move(sink)); }

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Answers> answers_;
};

// The keeper has the acquisition still in hand while the callback runs.
TEST_F(EngineTest, ALeaseThatACallbackWasGivenAsTheProgramEndsIsReleasedOnce) {
  std::shared_ptr<core::Engine> engine;
  std::atomic<bool> ended{false};
  const auto answers = std::make_shared<Withholding::Answers>();
  answers->withheld = false;
  engine = core::Engine::make(
      std::make_unique<Withholding>(store.open(), answers),
      {.observer = seen, .clock = clock, .executor = [&](const std::function<void()>& callback) {
         callback();
         engine->at_exit();
         ended = true;
       }});
  std::optional<Lease> lease;
  engine->acquire(engine->prepare({exclusive("r")}, {}), Wait::once(),
                  [&](Attempt attempt) { lease = std::move(attempt).value(); });
  ASSERT_TRUE(soon([&] { return ended.load(); }));
  EXPECT_EQ(lease->state(), LeaseState::released);
  EXPECT_TRUE(other.inspect().resources.empty());
  EXPECT_EQ(seen->count(Event::released), 1);
  EXPECT_EQ(answers->releases, 1);
  EXPECT_EQ(seen->count(Event::lost), 0);
}

TEST_F(EngineTest, WhatAWaiterGaveBackAtExitIsNoLeaseWhenItsGrantArrives) {
  MemoryStore real_time;
  const Client rival(real_time.open());
  auto held = Mutex(rival, "r").acquire();
  const auto answers = std::make_shared<Withholding::Answers>();
  const auto engine = core::Engine::make(std::make_unique<Withholding>(real_time.open(), answers),
                                         {.observer = seen});
  auto waiting = std::async(std::launch::async, [&] {
    return engine->acquire(engine->prepare({exclusive("r")}, {}), Wait::forever());
  });
  ASSERT_TRUE(soon([&] { return seen->count(Event::queued) == 1; }));
  held.release();
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(answers->mutex);
    return answers->give != nullptr;
  }));
  engine->at_exit();
  const auto next = Mutex(rival, "r").try_acquire();
  EXPECT_TRUE(next);
  std::exchange(answers->give, nullptr)();
  const auto attempt = waiting.get();
  EXPECT_EQ(attempt.outcome(), Outcome::cancelled) << "or two would have it";
}

TEST_F(EngineTest, APartOfWhatWasReleasedIsReleased) {
  auto lease = MultiLock(client, {"a", "b"}).acquire();
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_EQ(lease.release({"a"}), LeaseState::released);
  EXPECT_EQ(lease.resources().size(), 2U) << "it does not change any more";
}

}  // namespace
