// What the callers of one process share.
#include "recipes/flights.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <set>
#include <stdexcept>

#include "eventually.hpp"
#include "interlock/stores.hpp"
#include "recipes/shared_cache.hpp"

namespace interlock::flights {
namespace {

using namespace std::chrono_literals;
using recipes::SharedCache;
using testing_support::eventually;
using Result = std::future<std::optional<std::string>>;

class FlightsTest : public testing::Test {
 protected:
  Flights make(SingleFlightOptions options = {}) {
    return {Client(store_.open()), cache_.functions(),
            [this](const std::string& key, const std::stop_token& stop) {
              const int run = ++runs_;
              go_on_.wait();
              if (fails_) throw std::out_of_range("failed");
              (void)stop;
              return key + std::to_string(run);
            },
            std::move(options)};
  }
  static Result get(Flights& flights, const Wait& wait = Wait::forever()) {
    return std::async(std::launch::async, [&flights, wait] { return flights.get("k", wait); });
  }
  static Result replace(Flights& flights) {
    return std::async(std::launch::async,
                      [&flights] { return flights.replace("k", Wait::forever()); });
  }
  static void expect_waiting(Flights& flights, int count) {
    EXPECT_TRUE(eventually([&] { return flights.waiting("k") == count; }));
  }
  void expect_runs(int count) {
    EXPECT_TRUE(eventually([&] { return runs_ == count; }));
  }

  MemoryStore store_;
  SharedCache cache_;
  std::atomic<int> runs_{0};
  std::atomic<bool> fails_{false};
  std::promise<void> go_;
  std::shared_future<void> go_on_ = go_.get_future().share();
};

TEST_F(FlightsTest, AllCallersGetTheSameException) {
  fails_ = true;
  auto flights = make();
  std::vector<Result> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(get(flights));
  expect_waiting(flights, 5);
  go_.set_value();
  for (auto& caller : callers) EXPECT_THROW(caller.get(), std::out_of_range);
  EXPECT_EQ(runs_, 1);
}

TEST_F(FlightsTest, AllCallersGetAValueThatCannotBeStored) {
  cache_.before_put = [] { throw std::runtime_error("full"); };
  auto flights = make();
  std::vector<Result> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(get(flights));
  expect_waiting(flights, 5);
  go_.set_value();
  for (auto& caller : callers) EXPECT_EQ(caller.get(), "k1");
}

TEST_F(FlightsTest, ConcurrentReplacementsAreOneRun) {
  cache_.put("k", "old");
  auto flights = make();
  std::vector<Result> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(replace(flights));
  expect_waiting(flights, 5);
  go_.set_value();
  for (auto& caller : callers) EXPECT_EQ(caller.get(), "k1");
}

// The one who only misses it is under way, and may be about to find what the other wants replaced.
TEST_F(FlightsTest, AReplacementThatJoinsALookGetsAnotherValue) {
  std::atomic<int> looks{0};
  std::promise<void> look_on;
  auto flights = make();
  cache_.before_get = [&, on = look_on.get_future().share()] {
    if (++looks == 2) on.wait();
  };
  auto first = get(flights);
  EXPECT_TRUE(eventually([&] { return looks == 2; }));  // under the lock
  cache_.put("k", "old");
  auto second = replace(flights);
  expect_waiting(flights, 2);
  go_.set_value();
  look_on.set_value();
  EXPECT_EQ(second.get(), "k1");
  EXPECT_EQ(first.get(), "k1");
}

TEST_F(FlightsTest, TheLastWhoLeavesBeforeTheRunEndsTheWait) {
  const RwLock lock(Client(store_.open()), "single-flight:k");
  auto flights = make();
  {
    const auto held = lock.write();
    std::stop_source stop;
    auto first = get(flights, Wait::forever(stop.get_token()));
    auto second = get(flights, Wait::forever(stop.get_token()));
    expect_waiting(flights, 2);
    stop.request_stop();
    EXPECT_EQ(first.get(), std::nullopt);
    EXPECT_EQ(second.get(), std::nullopt);
    EXPECT_EQ(flights.waiting("k"), 0);
  }
  go_.set_value();
  EXPECT_EQ(get(flights).get(), "k1");
  EXPECT_EQ(runs_, 1) << "and those who left did not run it";
}

TEST_F(FlightsTest, ARunIsNotGivenUpAndCanBeJoinedWhenNobodyWaits) {
  auto flights = make();
  std::stop_source stop;
  auto first = get(flights, Wait::forever(stop.get_token()));
  expect_runs(1);
  stop.request_stop();
  EXPECT_EQ(first.get(), std::nullopt);
  auto second = get(flights);
  expect_waiting(flights, 1);
  go_.set_value();
  EXPECT_EQ(second.get(), "k1");
  EXPECT_EQ(cache_.get("k"), "k1");
}

TEST_F(FlightsTest, InAForkedChildItIsRefusedAndLeftAlone) {
  const auto make_flight = [&] {
    return SingleFlight(Client(store_.open()), cache_.functions(), [&](const std::string&) {
      ++runs_;
      go_on_.wait();
      return std::string("value");
    });
  };
  std::optional<SingleFlight> flight(make_flight());
  auto caller = std::async(std::launch::async, [&] { return flight->get("k"); });
  expect_runs(1);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 1;
    try {
      (void)flight->get("k");
    } catch (const Error& error) {
      code = error.errc() == Errc::forked ? 0 : 2;
    }
    flight.reset();
    ::_exit(code);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  go_.set_value();
  EXPECT_EQ(caller.get(), "value");
}

class Aging : public FlightsTest {
 protected:
  Aging() { go_.set_value(); }
  SingleFlightOptions options() {
    SingleFlightOptions some{.fresh_for = 60s, .stale_for = 30s, .early = 0};
    some.now = [this] { return std::chrono::system_clock::time_point(now_.load()); };
    some.on_problem = [this](const std::string&, const auto&) { ++problems_; };
    return some;
  }
  static std::optional<std::string> get_now(Flights& flights) {
    return flights.get("k", Wait::for_(60s));
  }

  std::atomic<std::chrono::system_clock::duration> now_{std::chrono::hours(400'000)};
  std::atomic<int> problems_{0};
};

TEST_F(Aging, AFreshValueIsGivenOutAsItIs) {
  auto flights = make(options());
  EXPECT_EQ(get_now(flights), "k1");
  now_ = now_.load() + 59s;
  EXPECT_EQ(get_now(flights), "k1");
  EXPECT_EQ(runs_, 1);
}

TEST_F(Aging, AStaleOneIsGivenOutAtOnceAndReplacedInTheBackground) {
  auto flights = make(options());
  EXPECT_EQ(get_now(flights), "k1");
  now_ = now_.load() + 61s;
  EXPECT_EQ(get_now(flights), "k1");
  EXPECT_TRUE(eventually([&] { return get_now(flights) == "k2"; }));
  EXPECT_EQ(runs_, 2) << "for all who asked meanwhile";
}

TEST_F(Aging, OneTooOldCountsAsMissing) {
  auto flights = make(options());
  EXPECT_EQ(get_now(flights), "k1");
  now_ = now_.load() + 90s;
  EXPECT_FALSE(flights.workshop().look("k"));
  EXPECT_EQ(get_now(flights), "k2");
}

TEST_F(Aging, OfManyProcessesOneRefreshes) {
  auto first = make(options());
  EXPECT_EQ(get_now(first), "k1");
  now_ = now_.load() + 61s;
  std::vector<std::unique_ptr<Flights>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<Flights>(
        Client(store_.open()), cache_.functions(),
        [this](const std::string& key, const std::stop_token&) {
          return key + std::to_string(++runs_);
        },
        options()));
  }
  for (auto& other : others) EXPECT_TRUE(get_now(*other));
  for (auto& other : others) EXPECT_TRUE(eventually([&] { return get_now(*other) == "k2"; }));
  others.clear();  // waits for all of them
  EXPECT_EQ(runs_, 2);
}

TEST_F(Aging, AFailedRefreshLeavesTheOldValueAndRestsForAWhile) {
  auto flights = make(options());
  EXPECT_EQ(get_now(flights), "k1");
  now_ = now_.load() + 61s;
  fails_ = true;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(get_now(flights), "k1");
  EXPECT_TRUE(eventually([&] { return problems_ > 0; }));
  EXPECT_LT(runs_, 500) << "not once for each who asked";
  fails_ = false;
  EXPECT_TRUE(eventually([&] { return get_now(flights) != "k1"; }));
}

TEST_F(Aging, WithoutRoomForRefreshesTheStaleOneStays) {
  auto some = options();
  some.refreshes = 0;
  auto flights = make(some);
  EXPECT_EQ(get_now(flights), "k1");
  now_ = now_.load() + 61s;
  EXPECT_EQ(get_now(flights), "k1");
  EXPECT_EQ(runs_, 1);
}

TEST_F(Aging, WhatWasStoredWithoutAStampIsStale) {
  cache_.put("k", "plain");
  auto flights = make(options());
  EXPECT_EQ(get_now(flights), "plain");
  EXPECT_TRUE(eventually([&] { return get_now(flights) == "k1"; }));
}

TEST_F(Aging, EarlyRefreshesComeAtRandomAndSoonerForWhatTakesLong) {
  auto some = options();
  some.early = 1;
  const Freshness freshness(some);
  const Cached slow(freshness.seal("v", 10s));
  const Cached quick(freshness.seal("v", 1ms));
  now_ = now_.load() + 55s;
  EXPECT_TRUE(freshness.due(slow, 0.1)) << "-ln(0.1) * 10 s is more than the 5 s that are left";
  EXPECT_FALSE(freshness.due(slow, 0.9));
  EXPECT_FALSE(freshness.due(quick, 0.1));
  now_ = now_.load() + 5s;
  EXPECT_TRUE(freshness.due(quick, 1));
}

TEST_F(Aging, AClockThatIsWrongMakesNothingFreshForever) {
  const auto some = options();
  const Freshness freshness(some);
  const Cached cached(freshness.seal("v", 1s));
  now_ = now_.load() - 1h;
  EXPECT_FALSE(freshness.usable(cached));
}

TEST(CachedTest, AnyValueComesBackAsItWas) {
  const SingleFlightOptions plain;
  const SingleFlightOptions aging{.fresh_for = 1s};
  for (const auto* options : {&plain, &aging}) {
    const Freshness freshness(*options);
    for (const std::string value :
         {"", "x", "interlock:1 ", "interlock:1 1 1\nx", "interlock:1 99999999999999999999 1\n",
          "interlock:1 -1 1\n", "interlock:1 1 1"}) {
      EXPECT_EQ(Cached(freshness.seal(value, 2s)).value(), value);
      const Cached bytes(value);
      EXPECT_EQ(bytes.bytes(), value);
    }
  }
  EXPECT_EQ(Freshness(plain).seal("x", 1s), "x");
  EXPECT_EQ(Cached(Freshness(aging).seal("x", 1500ms)).took(), 1500ms);
}

}  // namespace
}  // namespace interlock::flights
