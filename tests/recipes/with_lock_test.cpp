#include <stdexcept>

#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(WithLock);

TEST_P(WithLock, GivesTheResultBackAndFreesTheLock) {
  const Mutex mutex(client(), "report");
  EXPECT_EQ(with_lock(mutex,
                      [&] {
                        EXPECT_EQ(holders("report"), 1U);
                        return 42;
                      }),
            42);
  EXPECT_TRUE(nothing_left());
}

TEST_P(WithLock, TakesWhatTheFunctionAsksFor) {
  const Mutex mutex(client(), "report");
  with_lock(mutex, [](const std::stop_token& lost) { EXPECT_FALSE(lost.stop_requested()); });
  const auto first = with_lock(mutex, [](Lease& lease) { return lease.fence(); });
  const auto second = with_lock(mutex, [](Lease& lease) { return lease.fence(); });
  EXPECT_LT(first, second);
}

TEST_P(WithLock, TheFunctionsOwnExceptionWinsOverAFailingRelease) {
  const Mutex mutex(client(), "report");
  try {
    with_lock(mutex, [&] {
      store().break_hold("report");
      throw std::runtime_error("no paper");
    });
    FAIL() << "it should have thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no paper");
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(WithLock, AFunctionThatLostItsLockIsToldWhileItRuns) {
  const Mutex mutex(client(), "report", {.ttl = 1s});
  try {
    with_lock(mutex, [&](const std::stop_token& lost) {
      store().break_hold("report");
      EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    });
    FAIL() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::lost);
    EXPECT_NE(std::string(error.what()).find("report"), std::string::npos) << error.what();
  }
}

TEST_P(WithLock, DoesNotRunTheFunctionIfTheWaitIsStopped) {
  const auto locks = client();
  const auto held = Mutex(locks, "report").acquire();
  std::stop_source stop;
  stop.request_stop();
  bool ran = false;
  EXPECT_THROW(with_lock(
                   Mutex(locks, "report"), [&] { ran = true; }, stop.get_token()),
               Error);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace interlock::recipes
