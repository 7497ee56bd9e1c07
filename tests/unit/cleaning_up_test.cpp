// What gives a lock back in the background goes on until the store has confirmed it.
#include <gtest/gtest.h>

#include <atomic>

#include "eventually.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;
using namespace std::chrono_literals;
using testing_support::eventually;

namespace {

enum class Fate { unreachable, refused, silence };

/// The first releases meet a fate.
class Releases final : public Backend {
 public:
  struct Luck {
    std::atomic<int> bad = 0;
    std::atomic<Fate> fate{};
  };
  Releases(std::unique_ptr<Backend> inner, std::shared_ptr<Luck> luck)
      : inner_(std::move(inner)), luck_(std::move(luck)) {}

  [[nodiscard]] const Traits& traits() const noexcept override { return inner_->traits(); }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    inner_->acquire(claim, queue, call, std::move(reply));
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    inner_->renew(claim, call, std::move(reply));
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    if (luck_->bad == 0) return inner_->release(claim, call, std::move(reply));
    --luck_->bad;
    const auto fate = luck_->fate.load();
    if (fate == Fate::silence) return;
    reply(Answer::failed(Error(fate == Fate::refused ? Errc::refused : Errc::unreachable, "no")));
  }
  void inspect(const Query& query, Call call, Report report) override {
    inner_->inspect(query, call, std::move(report));
  }
  void on_wake(WakeSink) override {}  // what happens behind its back, a client finds out by asking

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Luck> luck_;
};

struct CleaningUp : testing::Test {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Releases::Luck> luck = std::make_shared<Releases::Luck>();
  MemoryStore store{clock};
  Client client{std::make_unique<Releases>(store.open(), luck), {.clock = clock}};
  Client other{store.open(), {.clock = clock}};

  /// Of a lease that ends by itself long after that.
  bool is_done_in_the_end() {
    auto lease = Mutex(client, "r", {.ttl = 24h, .renew = false}).acquire();
    lease.async_release([](LeaseState) {});
    const auto is_done = [&] {
      if (other.inspect().resources.empty()) return true;
      clock->advance(100ms);
      return false;
    };
    return eventually(is_done, 20s);
  }
};

TEST_F(CleaningUp, IsTriedAgainWhenTheStoreFails) {
  luck->fate = Fate::unreachable;
  luck->bad = 5;
  EXPECT_TRUE(is_done_in_the_end());
}

TEST_F(CleaningUp, IsTriedAgainWhenTheStoreRefuses) {
  luck->fate = Fate::refused;
  luck->bad = 5;
  EXPECT_TRUE(is_done_in_the_end());
}

TEST_F(CleaningUp, IsTriedAgainWhenTheStoreIsSilent) {
  luck->fate = Fate::silence;
  luck->bad = 3;
  EXPECT_TRUE(is_done_in_the_end());
}

TEST_F(CleaningUp, FindsOutThatTheLockWasTakenAway) {
  auto lease = Mutex(client, "r", {.ttl = 24h, .renew = false}).acquire();
  const auto lost = lease.lost();
  ASSERT_TRUE(other.evict("r", lease.owner()));
  const auto next = Mutex(other, "r").acquire();
  EXPECT_EQ(lease.state(), LeaseState::held) << "nobody has told";
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }, 20s));
  EXPECT_TRUE(next);
}

}  // namespace
