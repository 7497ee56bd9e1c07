// The threads that work for many, when the system refuses something: they go on.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <thread>

#include "core/io/loop.hpp"
#include "core/keeper.hpp"
#include "eventually.hpp"

namespace interlock {
namespace {

using testing_support::eventually;
using testing_support::kPatience;

/// There is never memory for it.
class Starved final : public io::Connection {
 public:
  void advance(TimePoint, io::Finished&) override {
    ++tries;
    throw std::bad_alloc();
  }
  void ready(TimePoint, io::Finished&, bool) override { throw std::bad_alloc(); }
  [[nodiscard]] int fd() const noexcept override { return -1; }
  [[nodiscard]] short events() const noexcept override { return 0; }
  [[nodiscard]] TimePoint next() const noexcept override { return TimePoint::max(); }
  [[nodiscard]] bool active() const noexcept override { return true; }
  [[nodiscard]] bool busy() const noexcept override { return true; }
  [[nodiscard]] bool expects_answer() const noexcept override { return false; }
  void abandon(io::Finished&) override {}

  std::atomic<int> tries = 0;
};

// One connection, one request and one callback fail. Expected: what else there is to do is done, by the
// background thread and by callers, who hand leadership on.
TEST(Contain, ALoopGoesOn) {
  io::Loop loop;
  const auto starved = std::make_shared<Starved>();
  loop.add(starved);
  EXPECT_TRUE(eventually([&] { return starved->tries > 0; }));
  const auto told = std::make_shared<std::promise<void>>();
  loop.post([](TimePoint, io::Finished&) { throw std::bad_alloc(); }, false);
  loop.post(
      [told](TimePoint, io::Finished& finished) {
        finished.list.emplace_back([] { throw std::bad_alloc(); });
        finished.list.emplace_back([told] { told->set_value(); });
        ++finished.urgent;
      },
      true);
  EXPECT_EQ(told->get_future().wait_for(kPatience), std::future_status::ready);

  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int calls = 0; calls < 50; ++calls) {
        const auto signal = std::make_shared<Signal>(*system_clock());
        loop.post([](TimePoint, io::Finished&) { throw std::bad_alloc(); }, false);
        loop.post(
            [signal](TimePoint, io::Finished& finished) {
              finished.list.emplace_back([signal] { signal->set(); });
            },
            false);
        const auto began = BootClock::now();
        loop.lend(*signal, began + kPatience);
        EXPECT_LT(BootClock::now() - began, kPatience);
      }
    });
  }
  for (auto& caller : callers) caller.join();
  loop.remove(starved);
}

// Expected: a task that ends with an exception is due again, and the others are not held up.
TEST(Contain, AKeeperGoesOn) {
  struct Refused final : core::Keeper::Task {
    void due(TimePoint) override {
      if (++times < 3) throw std::bad_alloc();
    }
    std::atomic<int> times = 0;
  };
  core::Keeper keeper(system_clock());
  const auto one = std::make_shared<Refused>();
  const auto other = std::make_shared<Refused>();
  other->times = 2;
  keeper.schedule(one, BootClock::now());
  keeper.schedule(other, BootClock::now());
  EXPECT_TRUE(eventually([&] { return one->times == 3 && other->times == 3; }));
}

}  // namespace
}  // namespace interlock
