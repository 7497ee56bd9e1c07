// Row 4.1: which store a Locking uses: by argument, then by the settings, then by default.
#include "interlock/locking.hpp"

#include <gtest/gtest.h>

#include "interlock/config.hpp"
#include "surroundings.hpp"

using namespace interlock;

namespace {

class LockingBackend : public testing::Test {
 protected:
  [[nodiscard]] std::string file_url(const std::string& name) const {
    return "file://" + (around_.path() / name).string();
  }
  static std::string where(const Locking& locking) { return locking.client().traits().where; }

  testing_support::Surroundings around_;
};

TEST_F(LockingBackend, IsTheArgumentFirst) {  // row 4.1
  around_.set("LOCKING_BACKEND", "memory");
  EXPECT_EQ(where(Locking("me", file_url("locks"))), file_url("locks"));
  EXPECT_EQ(where(Locking("me", "file")), user_store_url());
  around_.set("LOCKING_BACKEND", "file");
  EXPECT_EQ(where(Locking("me", "memory")), "memory:");
  EXPECT_THROW(Locking("me", "abacus"), Error);
  EXPECT_THROW(Locking("", "memory"), Error);
}

TEST_F(LockingBackend, IsWhatTheSettingsSayThen) {  // row 4.1
  around_.set("LOCKING_BACKEND", "file");
  EXPECT_EQ(where(Locking("me")), user_store_url());
  around_.set("INTERLOCK_URL", file_url("by-variable"));
  EXPECT_EQ(where(Locking("me")), file_url("by-variable"));
  around_.write("interlock.json", R"({"url": ")" + file_url("by-file") + "\"}");
  EXPECT_EQ(where(Locking("me")), file_url("by-file"));
}

TEST_F(LockingBackend, IsMemoryWithAWarningByDefault) {  // row 4.1
  Locking mine("me");
  EXPECT_EQ(where(mine), "memory:");
  EXPECT_EQ(mine.client().traits().warnings.size(), 1U);
  Locking yours("you");
  ASSERT_TRUE(mine.acquire({"r"}));
  EXPECT_FALSE(yours.acquire({"r"}, std::chrono::seconds(30), "", Duration::zero()))
      << "within the process it is one store";
}

}  // namespace
