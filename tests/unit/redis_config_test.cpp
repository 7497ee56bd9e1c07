// Settings: a store that is configured and out of reach. Row 3.4.
#include <gtest/gtest.h>

#include "interlock/config.hpp"
#include "interlock/interlock.hpp"
#include "surroundings.hpp"

using namespace interlock;

namespace {

constexpr const char* kOutOfReach = "redis://:geheim@127.0.0.1:1?timeout=500ms";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SettingsOutOfReach, AreAnError) {
  testing_support::Surroundings around;
  around.set("INTERLOCK_URL", kOutOfReach);
  try {
    (void)connect(Config::load());
    FAIL() << "nobody is there";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_TRUE(contains(error.what(), "set by INTERLOCK_URL")) << error.what();
    EXPECT_TRUE(contains(error.what(), "127.0.0.1:1")) << error.what();
    EXPECT_FALSE(contains(error.what(), "geheim")) << error.what();
  }
}

TEST(SettingsOutOfReach, AreMemoryWithAWarningIfTheSettingsSaySo) {
  testing_support::Surroundings around;
  around.set("INTERLOCK_URL", kOutOfReach);
  around.write("interlock.json", R"({"onUnavailable": "memory"})");
  const auto locks = connect(Config::load());
  EXPECT_EQ(locks.traits().name, "memory");
  ASSERT_EQ(locks.traits().warnings.size(), 1U);
  const auto& warning = locks.traits().warnings[0];
  EXPECT_TRUE(contains(warning, "can't be reached")) << warning;
  EXPECT_TRUE(contains(warning, "this process only")) << warning;
  EXPECT_TRUE(contains(warning, "127.0.0.1:1")) << warning;
  EXPECT_FALSE(contains(warning, "geheim")) << warning;
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
}

}  // namespace
