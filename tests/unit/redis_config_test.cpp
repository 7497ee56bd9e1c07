// Settings: a store that is configured and out of reach. Row 3.4.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interlock/config.hpp"
#include "interlock/interlock.hpp"
#include "interlock/stores.hpp"
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

// Nobody is asked before the first call.
std::vector<std::string> warnings_of(const std::string& url) {
  return stores::open(url)->traits().warnings;
}

std::string refusal_of(const std::string& url) {
  try {
    (void)stores::open(url);
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::invalid) << error.what();
    return error.message();
  }
  return "accepted";
}

TEST(PasswordFiles, ThatOthersMayReadOrChangeAreToldOrRefused) {
  testing_support::Surroundings around;
  const auto file = around.write("secret", "geheim\r\nmore").string();
  for (const std::string url :
       {"redis://127.0.0.1:1?password-file=",
        "redis+sentinel://127.0.0.1:1/m?sentinel-password-file=",
        "etcd://me@127.0.0.1:1?password-file=", "postgres://127.0.0.1:1/d?password-file=",
        "postgres://127.0.0.1:1/d?mode=lease&password-file="}) {
    const auto told = [&](mode_t mode) {
      EXPECT_EQ(chmod(file.c_str(), mode), 0);
      std::string all;
      for (const auto& warning : warnings_of(url + file)) all += warning;
      EXPECT_EQ(all.empty(), !contains(all, "password-file: " + file)) << all;
      EXPECT_FALSE(contains(all, "geheim"));
      return all;
    };
    EXPECT_EQ(told(0600), "");
    EXPECT_EQ(told(0640), "");
    EXPECT_TRUE(contains(told(0644), "everybody can read it (mode 0644)")) << url;
    EXPECT_TRUE(contains(told(0660), "its group can write to it (mode 0660)")) << url;
    for (const mode_t mode : {0666U, 0602U}) {
      ASSERT_EQ(chmod(file.c_str(), mode), 0);
      const auto text = refusal_of(url + file);
      EXPECT_TRUE(contains(text, "everybody can write to it")) << text;
      EXPECT_TRUE(contains(text, "chmod go-w " + file)) << text;
    }
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    if (geteuid() != 0) continue;
    ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(contains(told(0600), "belongs to user 12345")) << url;
    ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  }
}

TEST(PasswordFiles, MayBeNamedByALink) {
  testing_support::Surroundings around;
  around.write("secret", "geheim");
  ASSERT_EQ(chmod("secret", 0600), 0);
  std::filesystem::create_symlink("secret", "link");  // as Kubernetes has it
  EXPECT_TRUE(warnings_of("redis://127.0.0.1:1?password-file=link").empty());
  EXPECT_TRUE(contains(refusal_of("redis://h?password-file=gone"), "there is no such file"));
}

}  // namespace
