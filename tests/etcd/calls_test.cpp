// Calls of which nobody knows yet what came of them.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class Calls : public EtcdTest<servers::EtcdServer> {
 protected:
  /// What a store answered so far.
  class Answers {
   public:
    [[nodiscard]] Reply add() {
      return [all = all_](const Answer& answer) { all->add(answer.verdict); };
    }
    [[nodiscard]] std::size_t count() const { return all_->get().size(); }
    [[nodiscard]] auto of(Verdict verdict) const {
      const auto all = all_->get();
      return std::count(all.begin(), all.end(), verdict);
    }

   private:
    class All {
     public:
      void add(Verdict verdict) {
        const std::lock_guard lock(mutex_);
        all_.push_back(verdict);
      }
      [[nodiscard]] std::vector<Verdict> get() const {
        const std::lock_guard lock(mutex_);
        return all_;
      }

     private:
      mutable std::mutex mutex_;
      std::vector<Verdict> all_;
    };
    std::shared_ptr<All> all_ = std::make_shared<All>();
  };

  [[nodiscard]] static Claim claim(std::vector<Part> parts, std::int32_t priority = 0) {
    return {.owner = Owner::random(),
            .parts = std::move(parts),
            .ttl = 600s,
            .priority = priority,
            .who = std::make_shared<const Who>()};
  }
  [[nodiscard]] static Call soon() { return {.deadline = BootClock::now() + 5s}; }
  /// Has leases, and is known to etcd.
  void warm_up() {
    const auto mine = claim({{.resource = "warm"}});
    const auto other = claim({{.resource = "warm"}});
    Answers answers;
    store_->acquire(mine, true, soon(), answers.add());
    EXPECT_TRUE(eventually([&] { return answers.of(Verdict::granted) == 1; }));
    store_->acquire(other, true, soon(), answers.add());
    EXPECT_TRUE(eventually([&] { return answers.of(Verdict::queued) == 1; }));
    store_->release(other, soon(), answers.add());
    store_->release(mine, soon(), answers.add());
    EXPECT_TRUE(eventually([&] { return answers.count() == 4; }));
  }

  servers::Proxy proxy_{servers().port()};
  const std::unique_ptr<Backend> store_ =
      stores::open("etcd://127.0.0.1:" + std::to_string(proxy_.port()));
};

// Granted, which its client does not know yet; somebody else gets in line; and it asks again.
// Expected: it is not in line behind its own lock, and when it lets go, the other one has it.
TEST_F(Calls, WhoeverAsksAgainBeforeItIsAnsweredStandsInNobodysWay) {
  warm_up();
  const auto mine = claim({{.resource = "r"}});
  Answers answers;
  proxy_.stall(servers::Proxy::to_client);
  store_->acquire(mine, true, soon(), answers.add());
  EXPECT_TRUE(eventually([&] { return holders("r") == 1; }));
  auto other = queue_up(Mutex(connect(url()), "r", patient()));
  store_->acquire(mine, true, soon(), answers.add());
  proxy_.flow();
  EXPECT_TRUE(eventually([&] { return answers.count() == 2; }));
  EXPECT_GE(answers.of(Verdict::granted), 1);
  EXPECT_EQ(answers.of(Verdict::queued), 0);
  EXPECT_EQ(waiters("r"), 1);
  std::this_thread::sleep_for(8s);  // whoever seems to be silent in line would be cleaned up
  EXPECT_EQ(holders("r"), 1);
  EXPECT_FALSE(other.over());
  Answers released;
  store_->release(mine, soon(), released.add());
  EXPECT_TRUE(other.lease());
  EXPECT_TRUE(eventually([&] { return released.of(Verdict::granted) == 1; }));
}

// They have only an ancestor in common. Expected: none of them waits for another.
TEST_F(Calls, LocksInOneFolderDoNotWaitForEachOther) {
  warm_up();
  Answers answers;
  proxy_.stall(servers::Proxy::to_client);
  for (const auto* name : {"orders/1", "orders/2", "orders/3", "orders/4"}) {
    store_->acquire(
        claim({{.resource = "orders", .mode = Mode::shared, .ancestor = true}, {.resource = name}}),
        true, soon(), answers.add());
  }
  proxy_.flow();
  EXPECT_TRUE(eventually([&] { return answers.count() == 4; }));
  EXPECT_EQ(answers.of(Verdict::granted), 4);
}

// Expected: it is in etcd, while those who hurry less wait for their turn to get there.
TEST_F(Calls, WhoeverHurriesIsNotHeldBackByItsClient) {
  warm_up();
  const auto lease = Mutex(connect(url()), "r", patient()).acquire();
  Answers answers;
  proxy_.stall(servers::Proxy::to_client);
  for (const auto priority : {0, 0, 0, 5}) {
    store_->acquire(claim({{.resource = "r"}}, priority), true, soon(), answers.add());
  }
  EXPECT_TRUE(eventually([&] {
    const auto all = look("r").waiters;
    return std::any_of(all.begin(), all.end(), [](const auto& one) { return one.priority == 5; });
  }));
  proxy_.flow();
  EXPECT_TRUE(eventually([&] { return answers.of(Verdict::queued) == 4; }));
}

class Stalls : public EtcdTest<servers::EtcdServer> {};

// A stall that is shorter than what a place in line outlasts, and somebody who comes meanwhile.
// Expected: everybody is still where it was.
TEST_F(Stalls, NobodyLosesItsPlaceToOneWhoComesMeanwhile) {
  const auto lease = Mutex(connect(url()), "r", patient()).acquire();
  const auto locks = connect(url());
  const auto first = queue_up(Mutex(locks, "r", {.ttl = 600s, .label = "first"}));
  const auto second = queue_up(Mutex(connect(url()), "r", {.ttl = 600s, .label = "second"}));
  servers().process().signal(SIGSTOP);
  std::this_thread::sleep_for(3s);
  std::stop_source stop;
  std::atomic<bool> over = false;
  Mutex(locks, "r", {.ttl = 600s, .label = "last"})
      .acquire(Wait::forever(stop.get_token()), [&](const Attempt&) { over = true; });
  std::this_thread::sleep_for(100ms);
  servers().process().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return waiters("r") == 3; }));
  std::this_thread::sleep_for(7s);  // a lease that is not kept alive is over by then
  std::vector<std::string> labels;
  for (const auto& waiter : look("r").waiters) labels.push_back(waiter.who.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"first", "second", "last"}));
  stop.request_stop();
  EXPECT_TRUE(eventually([&] { return over.load(); }));
}

}  // namespace
}  // namespace interlock::etcd_tests
