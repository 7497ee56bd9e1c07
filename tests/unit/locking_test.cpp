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

TEST_F(LockingBackend, IsTheArgumentBeforeTheVariableBeforeTheDefault) {  // row 4.1
  EXPECT_EQ(where(Locking("me")), "memory:") << "the default";
  around_.set("LOCKING_BACKEND", "file");
  EXPECT_EQ(where(Locking("me", LockingStore{})), user_store_url()) << "the variable";
  EXPECT_EQ(where(Locking("me", {.backend = "memory"})), "memory:") << "the argument";
}

// Row 4.5: the directory and the name of the store in it.
TEST_F(LockingBackend, FilesAreWhereTheArgumentsSay) {
  around_.set("LOCKING_BACKEND", "memory");
  const auto in = around_.path() / "a b#c";
  std::filesystem::create_directory(in);
  Locking named("me", {.backend = "file", .working_dir = in, .lock_file_name = "jobs.lock"});
  ASSERT_TRUE(named.acquire({"r"}));
  EXPECT_TRUE(std::filesystem::is_directory(in / "jobs.lock"));
  EXPECT_FALSE(Locking("you", {.working_dir = in, .lock_file_name = "jobs.lock"})
                   .acquire({"r"}, std::chrono::seconds(30), "", Duration::zero()));
  Locking standard("me", {.working_dir = "a b#c"});  // from the current directory
  ASSERT_TRUE(standard.acquire({"r"})) << "another store";
  EXPECT_TRUE(std::filesystem::is_directory(in / ".interlock"));
}

TEST_F(LockingBackend, ArgumentsThatContradictEachOtherAreRefused) {  // rows 4.1 and 4.5
  const auto in = around_.path();
  for (const LockingStore& store :
       {LockingStore{.host = "h", .working_dir = in}, LockingStore{.backend = "file", .port = 1},
        LockingStore{.backend = "redis", .working_dir = in},
        LockingStore{.backend = "redis://h", .password = "geheim"},
        LockingStore{.backend = "file", .lock_file_name = "x"},
        LockingStore{.working_dir = in, .lock_file_name = "a/b"},
        LockingStore{.working_dir = in, .lock_file_name = ".."},
        LockingStore{.host = "h", .port = 70000}, LockingStore{.host = "h", .db = -1}}) {
    try {
      (void)Locking("me", store);
      FAIL() << store.backend << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::invalid) << error.what();
      EXPECT_EQ(std::string(error.what()).find("geheim"), std::string::npos) << error.what();
    }
  }
}

TEST_F(LockingBackend, IsWhatTheSettingsSayThen) {  // row 4.1
  around_.set("LOCKING_BACKEND", "file");
  EXPECT_EQ(where(Locking("me")), user_store_url());
  around_.write("interlock.json", R"({"url": ")" + file_url("by-file") + "\"}");
  EXPECT_EQ(where(Locking("me")), file_url("by-file"));
  around_.set("INTERLOCK_URL", file_url("by-variable"));
  EXPECT_EQ(where(Locking("me")), file_url("by-variable"));
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
