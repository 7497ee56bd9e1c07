// Row 1.2: acquire with retry, up to n tries, sleeping 2^i x 100 ms between them, interruptible.
#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(AcquireWithRetry);

constexpr Retry kDoubling{.attempts = 3, .first = 100ms, .max = 1h, .multiplier = 2, .jitter = 0};

TEST_P(AcquireWithRetry, TriesNTimesWithDoublingPauses) {  // row 1.2
  COVERS(conformance::Case<4>);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(kDoubling.delay(i + 1), (1 << i) * 100ms);
  const auto held = Mutex(client(), "domain:example.org").acquire();
  const auto attempt = Mutex(client(), "domain:example.org").try_acquire_times(kDoubling);
  EXPECT_EQ(attempt.outcome(), Outcome::exhausted);
  EXPECT_EQ(attempt.attempts(), 3);
  EXPECT_GE(attempt.waited(), 300ms) << "100 ms and 200 ms, and none after the last try";
}

TEST_P(AcquireWithRetry, GetsItWhenItIsFreeAtOneOfTheTries) {  // row 1.2
  auto held = Mutex(client(), "domain:example.org").acquire();
  auto many = kDoubling;
  many.attempts = 1000;
  many.max = 200ms;
  auto trying = std::async(std::launch::async, [&, locks = client()] {
    return Mutex(locks, "domain:example.org").try_acquire_times(many);
  });
  EXPECT_EQ(trying.wait_for(150ms), std::future_status::timeout);
  held.release();
  const auto attempt = trying.get();
  ASSERT_TRUE(attempt);
  EXPECT_GE(attempt.attempts(), 2);
}

TEST_P(AcquireWithRetry, CanBeInterruptedWhileItSleeps) {  // row 1.2
  const auto held = Mutex(client(), "domain:example.org").acquire();
  std::stop_source stop;
  auto hourly = kDoubling;
  hourly.first = 1h;
  auto trying = std::async(std::launch::async, [&, locks = client()] {
    return Mutex(locks, "domain:example.org").try_acquire_times(hourly, stop.get_token());
  });
  EXPECT_EQ(trying.wait_for(100ms), std::future_status::timeout);
  stop.request_stop();
  EXPECT_EQ(trying.get().outcome(), Outcome::cancelled);
}

}  // namespace
}  // namespace interlock::recipes
