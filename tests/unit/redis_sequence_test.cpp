// Claims over several slots of a cluster, whose answers come when the test says so.
#include <gtest/gtest.h>

#include <deque>
#include <future>

#include "backends/redis/reader.hpp"
#include "backends/redis/store.hpp"

namespace interlock::redis {
namespace {

using namespace std::chrono_literals;

constexpr auto kGranted = ":5\r\n";
constexpr auto kBusy = "*1\r\n$4\r\nbusy\r\n";
constexpr auto kReleased = ":1\r\n";

/// Keeps what is asked until the test answers it.
class Asked final : public Realm {
 public:
  struct Request {
    std::uint16_t slot;
    bool releases;
    Server::Then then;
  };

  [[nodiscard]] bool spread() const noexcept override { return true; }
  void run(std::uint16_t slot, const Script& script, const MakeWords&, Call,
           Server::Then then) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back({slot, &script == &Scripts::all().release, std::move(then)});
  }
  void listen(std::uint16_t, std::function<void()>) override {}
  void all(Call, std::function<void(Servers, std::optional<Error>)> then) override {
    then({}, std::nullopt);
  }

  [[nodiscard]] std::size_t open() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }
  /// The one that was asked first of those that are open.
  [[nodiscard]] Request take() {
    const std::lock_guard lock(mutex_);
    auto request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

 private:
  std::mutex mutex_;
  std::deque<Request> requests_;
};

void answer(const Asked::Request& request, const char* bytes) {
  Reader reader;
  reader.feed(bytes);
  request.then({.reply = std::move(*reader.next())});
}

class Sequences : public testing::Test {
 protected:
  Sequences() {
    auto asked = std::make_unique<Asked>();
    asked_ = asked.get();
    Traits traits;
    traits.call_timeout = 5s;
    store_ = std::make_unique<Store>(std::make_unique<Common>("interlock:"), std::move(asked),
                                     std::move(traits));
  }
  [[nodiscard]] std::future<Answer> ask() {
    const auto promise = std::make_shared<std::promise<Answer>>();
    store_->acquire(claim_, false, {.deadline = BootClock::now() + 5s},
                    [promise](Answer one) { promise->set_value(std::move(one)); });
    return promise->get_future();
  }

  const Claim claim_{.owner = Owner::random(),
                     .parts = {{.resource = "a"}, {.resource = "b"}},
                     .ttl = 30s,
                     .who = std::make_shared<const Who>()};
  Asked* asked_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_F(Sequences, WhatWasTakenIsGivenBackIfTheRestIsBusy) {
  auto outcome = ask();
  const auto first = asked_->take();
  answer(first, kGranted);
  const auto second = asked_->take();
  EXPECT_NE(second.slot, first.slot);
  answer(second, kBusy);
  const auto back = asked_->take();
  EXPECT_TRUE(back.releases);
  EXPECT_EQ(back.slot, first.slot);
  answer(back, kReleased);
  EXPECT_EQ(outcome.get().verdict, Verdict::busy);
  EXPECT_EQ(asked_->open(), 0U);
}

// The second slot is slow. The owner asks again, and is granted both. Then the first call learns that the
// second slot was busy. Expected: it gives back nothing of what the second call was granted.
TEST_F(Sequences, ACallThatIsRefusedLateLeavesTheLaterGrantAlone) {
  auto early = ask();
  answer(asked_->take(), kGranted);
  const auto slow = asked_->take();
  auto later = ask();
  answer(asked_->take(), kGranted);
  answer(asked_->take(), kGranted);
  EXPECT_EQ(later.get().verdict, Verdict::granted);
  answer(slow, kBusy);
  EXPECT_EQ(early.get().verdict, Verdict::busy);
  EXPECT_EQ(asked_->open(), 0U);
}

// The same, while the later call is under way.
TEST_F(Sequences, ACallThatIsRefusedLateLeavesTheLaterCallAlone) {
  auto early = ask();
  answer(asked_->take(), kGranted);
  const auto slow = asked_->take();
  auto later = ask();
  answer(asked_->take(), kGranted);
  const auto last = asked_->take();
  answer(slow, kBusy);
  EXPECT_EQ(early.get().verdict, Verdict::busy);
  EXPECT_EQ(asked_->open(), 0U);
  answer(last, kGranted);
  EXPECT_EQ(later.get().verdict, Verdict::granted);
}

}  // namespace
}  // namespace interlock::redis
