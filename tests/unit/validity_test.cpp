// Calls that take their time: a lease is valid from before the request left, whatever it asked for.
#include <gtest/gtest.h>

#include "eventually.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;
using namespace std::chrono_literals;
using testing_support::eventually;

namespace {

/// Time passes while a call is under way. One answer to an acquisition may get lost.
class Slow final : public Backend {
 public:
  struct Pace {
    Duration each{};
    bool lose_one = false;
  };
  Slow(std::unique_ptr<Backend> inner, std::shared_ptr<ManualClock> clock,
       std::shared_ptr<Pace> pace)
      : inner_(std::move(inner)), clock_(std::move(clock)), pace_(std::move(pace)) {}

  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    clock_->advance(pace_->each);
    if (!std::exchange(pace_->lose_one, false))
      return inner_->acquire(claim, queue, call, std::move(reply));
    inner_->acquire(claim, queue, call, [reply](const Answer&) {
      reply(Answer::failed(
          {Errc::unreachable, "lost", {.resource = {}, .node = {}, .maybe_held = true}}));
    });
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    clock_->advance(pace_->each);
    inner_->renew(claim, call, std::move(reply));
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    inner_->release(claim, call, std::move(reply));
  }
  void inspect(const Query& query, Call call, Report report) override {
    inner_->inspect(query, call, std::move(report));
  }
  void on_wake(WakeSink sink) override { inner_->on_wake(std::move(sink)); }

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<ManualClock> clock_;
  std::shared_ptr<Pace> pace_;
};

struct Validity : testing::Test {
  static constexpr Duration kTtl = 30s;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Slow::Pace> pace = std::make_shared<Slow::Pace>();
  MemoryStore store{clock};
  Client client{std::make_unique<Slow>(store.open(), clock, pace), {.clock = clock}};
  Duration drift = client.traits().drift(kTtl);

  static Options options() { return {.ttl = kTtl, .renew = false, .retry = Retry::none()}; }
  /// From now on; answers what a request that leaves now is good for.
  TimePoint slow_down(Duration each = 3s) {
    clock->advance(5s);
    pace->each = each;
    return clock->now() + kTtl - drift;
  }
};

TEST_F(Validity, OfAGrant) {
  const auto valid_until = slow_down();
  const auto lease = Mutex(client, "r", options()).acquire();
  EXPECT_EQ(lease.valid_until(), valid_until);
}

TEST_F(Validity, OfARenewal) {
  const auto lease = Mutex(client, "r", {.ttl = kTtl}).acquire();
  const auto first = lease.valid_until();
  pace->each = 3s;
  const auto sent = clock->now() + 10s;
  clock->advance(10s);
  ASSERT_TRUE(eventually([&] { return lease.valid_until() > first; }));
  EXPECT_EQ(lease.valid_until(), sent + kTtl - drift);
}

TEST_F(Validity, OfAnExtension) {
  auto lease = Mutex(client, "r", options()).acquire();
  const auto valid_until = slow_down();
  EXPECT_TRUE(lease.extend(kTtl));
  EXPECT_EQ(lease.valid_until(), valid_until);
}

TEST_F(Validity, OfAnUpgrade) {
  auto lease = RwLock(client, "r", options()).read();
  const auto valid_until = slow_down();
  EXPECT_TRUE(lease.try_upgrade());
  EXPECT_EQ(lease.valid_until(), valid_until);
}

TEST_F(Validity, OfADowngrade) {
  auto lease = RwLock(client, "r", options()).write();
  const auto valid_until = slow_down();
  EXPECT_TRUE(lease.downgrade());
  EXPECT_EQ(lease.valid_until(), valid_until);
}

// The answer to the downgrade is lost, and it is asked for again, half a second later: before the background asks, too.
TEST_F(Validity, OfADowngradeThatIsAskedForAgain) {
  auto lease = RwLock(client, "r", options()).write();
  const auto valid_until = slow_down(500ms);
  pace->lose_one = true;
  EXPECT_TRUE(lease.downgrade());
  EXPECT_EQ(lease.valid_until(), valid_until + 500ms);
}

TEST_F(Validity, OfAnAdoptedLease) {
  const auto token = Mutex(client, "r", options()).acquire().detach();
  const auto valid_until = slow_down();
  const auto lease = client.adopt(token, false);
  EXPECT_EQ(lease.valid_until(), valid_until);
}

}  // namespace
