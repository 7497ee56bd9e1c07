// Settings: who decides, what the file may say, and what comes of it. Rows 3.4, 3.5, 3.8 and 4.1.
#include "interlock/config.hpp"
#include "eventually.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/text.hpp"
#include "interlock/interlock.hpp"
#include "surroundings.hpp"

using namespace interlock;
using namespace std::chrono_literals;

namespace {

class Settings : public testing::Test {
 protected:
  static Setting explained(const Config& config, const std::string& key) {
    for (auto& setting : config.explain()) {
      if (setting.key == key) return setting;
    }
    ADD_FAILURE() << key << " is not explained";
    return {};
  }
  std::string refusal(const Presets& presets = {}) {
    try {
      (void)Config::load(presets);
    } catch (const Error& error) {
      EXPECT_TRUE(error.errc() == Errc::invalid || error.errc() == Errc::invalid_ttl)
          << error.what();
      return error.message();
    }
    return "accepted";
  }
  std::string refusal_of(const std::string& text) {
    around_.write("interlock.json", text);
    return refusal();
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  testing_support::Surroundings around_;
};

class Warnings final : public Observer {
 public:
  void on(const Observation& seen) noexcept override {
    const std::lock_guard lock(mutex_);
    if (seen.event == Event::warned) texts_.push_back(seen.error->message());
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

TEST_F(Settings, TheProgramThenInterlockUrlThenTheFileThenSharedVariablesThenTheDefault) {
  EXPECT_EQ(Config::load().url(), "");
  EXPECT_EQ(explained(Config::load(), "url").origin, SettingOrigin::standard);

  around_.set("REDIS_HOST", "redis.internal");
  EXPECT_EQ(Config::load().url(), "redis://redis.internal");

  const auto file = around_.write("interlock.json", R"({"url": "memory:from-file", "ttl": "7s"})");
  EXPECT_EQ(Config::load().url(), "memory:from-file");
  EXPECT_EQ(explained(Config::load(), "url").origin, SettingOrigin::file);
  EXPECT_EQ(explained(Config::load(), "url").where, file.string() + ":1");

  around_.set("INTERLOCK_URL", "memory:from-environment");
  EXPECT_EQ(Config::load().url(), "memory:from-environment");
  EXPECT_EQ(explained(Config::load(), "url").where, "INTERLOCK_URL");
  EXPECT_EQ(Config::load().options().ttl, 7s) << "what it leaves open, the file decides";
  EXPECT_EQ(Config::load({.file = file}).url(), "memory:from-file") << "the program named it";
  around_.set("INTERLOCK_CONFIG", file);
  EXPECT_EQ(Config::load().url(), "memory:from-environment");

  const auto config = Config::load({.file = file, .url = "memory:from-code"});
  EXPECT_EQ(config.url(), "memory:from-code");
  EXPECT_EQ(explained(config, "url").origin, SettingOrigin::code);
  EXPECT_EQ(config.options().ttl, 7s) << "what the program leaves open, the file decides";
  EXPECT_EQ(explained(config, "logLevel").origin, SettingOrigin::standard);
}

TEST_F(Settings, TheFileIsTheOneInTheProgramThenInterlockConfigThenTheOneInTheDirectory) {
  const auto one = around_.write("one.json", R"({"label": "one"})");
  const auto two = around_.write("two.json", R"({"label": "two"})");
  EXPECT_EQ(Config::load().file(), "");
  const auto here = around_.write("interlock.json", R"({"label": "here"})");
  EXPECT_EQ(Config::load().options().label, "here");
  EXPECT_EQ(Config::load().file(), here);
  around_.set("INTERLOCK_CONFIG", two);
  EXPECT_EQ(Config::load().options().label, "two");
  EXPECT_EQ(Config::load({.file = one}).options().label, "one");
  EXPECT_EQ(Config::load({.file = "one.json"}).file(), one) << "shown with its whole path";
  around_.set("INTERLOCK_CONFIG", "/dev/null");
  EXPECT_EQ(Config::load().options().label, "") << "none at all";
  EXPECT_EQ(Config::load().file(), "");
  around_.set("INTERLOCK_CONFIG", "missing.json");
  EXPECT_TRUE(contains(refusal(), "missing.json: there is no such settings file")) << refusal();
  EXPECT_TRUE(contains(refusal({.file = around_.path()}), "not a regular file"));
}

TEST_F(Settings, TheKeysOfACacheThatLocksAreKnown) {  // row 3.5
  around_.write("interlock.json", R"({
    "enableDistributedLocking": true,       // comments are fine
    "distributedLockTimeout": "00:05:00",
    "distributedLockExpiry": "00:10:00",
    "ConnectionStrings": {"Redis": "localhost:6379"}
  })");
  const auto config = Config::load();
  EXPECT_TRUE(config.distributed_locking());
  EXPECT_EQ(config.options().max_wait, Duration(5min));
  EXPECT_EQ(config.options().ttl, 10min);
  EXPECT_EQ(config.url(), "redis://localhost:6379");
  EXPECT_TRUE(explained(config, "maxWait").where.ends_with("interlock.json:3"));
  EXPECT_TRUE(explained(config, "ttl").where.ends_with("interlock.json:4"));
  EXPECT_TRUE(explained(config, "url").where.ends_with("interlock.json:5"));
  EXPECT_EQ(explained(config, "maxWait").value, "5m");
}

// Row 3.5: the file of a program with a raster cache, its own section, and that cache's defaults.
TEST_F(Settings, TheSectionOfARasterCacheIsRead) {
  around_.write("interlock.json", R"({
    "honua": {
      "other": {"deep": {"zarr": 1}},
      "rasterCache": {
        "zarrEnabled": true,
        "enableDistributedLocking": true,
        "distributedLockTimeout": "00:07:00",   // comments are fine
        "distributedLockExpiry": "00:15:00"
      }
    },
    "ConnectionStrings": {"Redis": "localhost:6379"}
  })");
  const auto config = Config::load();
  EXPECT_TRUE(config.distributed_locking());
  EXPECT_EQ(config.options().max_wait, Duration(7min));
  EXPECT_EQ(config.options().ttl, 15min);
  EXPECT_EQ(config.url(), "redis://localhost:6379");
  EXPECT_TRUE(explained(config, "maxWait").where.ends_with("interlock.json:7"));

  around_.write("interlock.json",
                R"({"honua": {"rasterCache": {"enableDistributedLocking": true}}})");
  const auto standard = Config::load();
  EXPECT_EQ(standard.options().max_wait, Duration(5min)) << "the default of that cache";
  EXPECT_EQ(standard.options().ttl, 10min) << "the default of that cache";
  EXPECT_EQ(standard.url(), "");
  EXPECT_EQ(standard.warnings().size(), 1U);

  around_.write("interlock.json",
                R"({"honua": {"rasterCache": {"enableDistributedLocking": false}}, "ttl": "10s"})");
  const auto off = Config::load();
  EXPECT_FALSE(off.distributed_locking());
  EXPECT_EQ(off.options().ttl, 10s);
  EXPECT_TRUE(off.warnings().empty());
  around_.write("interlock.json", R"({"honua": {"somethingElse": {}}})");
  EXPECT_EQ(Config::load().options().ttl, Options{}.ttl) << "no such section, no such defaults";
}

TEST(NoStore, IsNamedWithTheComponentThatBringsItOrWithWhatWasMeant) {
  const auto text = [](std::string_view url, const std::vector<StoreEntry>& stores) {
    return detail::no_store(Url::parse(url), stores).message();
  };
  const StoreEntry file{.name = "file", .schemes = {"file"}};
  const StoreEntry redis{.name = "redis", .schemes = {"redis", "redlock"}};
  EXPECT_EQ(text("redlock://a,b,c", {file}),
            "this program has no store for redlock:; it has file:. With CMake: "
            "find_package(interlock COMPONENTS redis)");
  EXPECT_TRUE(text("postgresql://h/db", {file, redis}).ends_with("COMPONENTS postgres)"));
  EXPECT_TRUE(text("etcds://h", {file, redis}).ends_with("COMPONENTS etcd)"));
  EXPECT_EQ(text("redis+tls://h", {file, redis}),
            "this program has no store for redis+tls:; it has file:, redis:; name one of these");
  EXPECT_TRUE(text("flie:///x", {file, redis}).ends_with("did you mean file:?"));
  EXPECT_EQ(text("host:6379", {file}),
            "the store's URL has to begin with a scheme; did you mean redis://host:6379?");
}

TEST_F(Settings, AFileDoesNotSwitchOffAStoreThatIsNamedBeforeIt) {  // row 3.5
  around_.write("interlock.json", R"({"enableDistributedLocking": false})");
  EXPECT_FALSE(Config::load().distributed_locking());
  EXPECT_TRUE(Config::load({.url = "memory:from-code"}).distributed_locking());
  around_.set("REDIS_HOST", "redis.internal");
  EXPECT_FALSE(Config::load().distributed_locking()) << "that is named after the file";
  around_.set("INTERLOCK_URL", "memory:from-environment");
  EXPECT_TRUE(Config::load().distributed_locking());
  EXPECT_EQ(explained(Config::load(), "enableDistributedLocking").origin, SettingOrigin::standard);
  EXPECT_FALSE(Config::load({.file = "interlock.json"}).distributed_locking());
  EXPECT_FALSE(Config::load({.url = "memory:from-code", .enable_distributed_locking = false})
                   .distributed_locking());
  around_.set("INTERLOCK_URL", "");
  around_.write("interlock.json", R"({"enableDistributedLocking": false, "url": "memory:a"})");
  EXPECT_FALSE(Config::load().distributed_locking());
  around_.write("interlock.json", R"({"url": "memory:a", "enableDistributedLocking": false})");
  EXPECT_FALSE(Config::load().distributed_locking()) << "in whatever order";
}

TEST_F(Settings, WhatIsWrongInTheSectionOfARasterCacheIsTold) {  // row 3.5
  const auto in_cache = [&](const std::string& text) {
    return refusal_of("{\"honua\": {\n\"rasterCache\": {\n" + text + "}}}");
  };
  EXPECT_TRUE(contains(in_cache(R"("distributedLockTimout": "00:05:00")"),
                       "interlock.json:3: rasterCache has \"distributedLockTimout\"; did you mean "
                       "\"distributedLockTimeout\"?"));
  EXPECT_TRUE(contains(in_cache(R"("distributedLockExpiry": "00:00:00")"),
                       "interlock.json:3: distributedLockExpiry: a time to live of 0s"));
  EXPECT_TRUE(contains(in_cache(R"("distributedLockTimeout": 300)"), "\"00:00:10\""));
  EXPECT_TRUE(
      contains(in_cache("\"distributedLockExpiry\": \"1m\",\n\"distributedLockExpiry\": \"2m\""),
               "interlock.json:4: \"distributedLockExpiry\" is there twice"));
  EXPECT_TRUE(
      contains(refusal_of(R"({"honua": {"rasterCach": {}}})"), "did you mean \"rasterCache\"?"));
  EXPECT_TRUE(contains(refusal_of(R"({"honua": true})"), "honua is a section"));
  EXPECT_TRUE(contains(refusal_of(R"({"honua": [{"rasterCache": {}}, {"rasterCache": {}}]})"),
                       "honua is a section"));
  EXPECT_TRUE(
      contains(refusal_of(R"({"honua": {"rasterCache": true}})"), "rasterCache is a section"));
  EXPECT_TRUE(contains(
      refusal_of(R"({"honua": {"rasterCache": {"distributedLockExpiry": "1m"}}, "ttl": "10s"})"),
      "set the same thing"));
}

TEST_F(Settings, OurOwnKeysAreKnown) {
  around_.write("interlock.json", R"({
    "url": "memory:x", "ttl": "10s", "maxWait": "1m30s", "label": "web", "onUnavailable": "memory",
    "deadlockDetection": false, "logLevel": "debug"
  })");
  const auto config = Config::load();
  EXPECT_EQ(config.url(), "memory:x");
  EXPECT_EQ(config.options().ttl, 10s);
  EXPECT_EQ(config.options().max_wait, Duration(90s));
  EXPECT_EQ(config.options().label, "web");
  EXPECT_EQ(config.on_unavailable(), OnUnavailable::memory);
  EXPECT_FALSE(config.deadlock_detection());
  EXPECT_EQ(config.log_level(), "debug");
}

TEST_F(Settings, DurationsAreWrittenInTwoWays) {  // row 3.5
  const auto ttl = [&](const std::string& text) {
    around_.write("interlock.json", "{\"ttl\": \"" + text + "\"}");
    return Config::load().options().ttl;
  };
  EXPECT_EQ(ttl("10s"), 10s);
  EXPECT_EQ(ttl("250ms"), 250ms);
  EXPECT_EQ(ttl("00:00:10"), 10s);
  EXPECT_EQ(ttl("01:02:03"), 1h + 2min + 3s);
  EXPECT_EQ(ttl("1.00:00:00"), 24h);
  EXPECT_EQ(ttl("00:00:01.5"), 1500ms);
  EXPECT_EQ(ttl("0:5:0"), 5min);
  for (const auto* bad : {"10", "5:00", "00:60:00", "24:00:00", "00:00:-1", "00:00:01.",
                          "::", "1:2:3:4", "00:00:00", "0s", "-5s", "", "00:00:1e3"}) {
    const auto text = refusal_of("{\n\"ttl\": \"" + std::string(bad) + "\"}");
    EXPECT_TRUE(contains(text, "interlock.json:2: ttl: ")) << bad << ": " << text;
  }
  EXPECT_TRUE(contains(refusal_of(R"({"distributedLockExpiry": 30})"), "\"10s\" or \"00:00:10\""))
      << "nobody can tell the unit of a bare number";
  EXPECT_TRUE(
      contains(refusal_of(R"({"maxWait": "00:00:00"})"), "maxWait: it has to be more than"));
}

TEST_F(Settings, AnUnknownKeyIsAnErrorThatSuggestsTheNearestOne) {
  const auto text =
      refusal_of("{\n  \"url\": \"memory:\",\n  \"distributedLockTimout\": \"10s\"\n}");
  EXPECT_TRUE(contains(text, (around_.path() / "interlock.json").string() + ":3: ")) << text;
  EXPECT_TRUE(contains(text, "\"distributedLockTimout\"")) << text;
  EXPECT_TRUE(contains(text, "did you mean \"distributedLockTimeout\"?")) << text;
  EXPECT_TRUE(contains(refusal_of(R"({"EnableDistributedLocking": true})"),
                       "did you mean \"enableDistributedLocking\"?"));
  EXPECT_TRUE(
      contains(refusal_of(R"({"dependencies": {}})"), "there is ConnectionStrings, honua, url, "));
  EXPECT_TRUE(
      contains(refusal_of("{\"ConnectionStrings\":\n{\"Rediss\": \"\"}}"),
               "interlock.json:2: ConnectionStrings has \"Rediss\"; did you mean \"Redis\"?"));
}

TEST_F(Settings, AStrayFileSaysWhyItWasReadAndHowToAvoidIt) {
  const auto stray = refusal_of(R"({"name": "my-web-app", "version": "1.2.3"})");
  EXPECT_TRUE(contains(stray, "in the current directory")) << stray;
  EXPECT_TRUE(contains(stray, "INTERLOCK_CONFIG=/dev/null")) << stray;
  around_.set("INTERLOCK_CONFIG", "interlock.json");
  EXPECT_FALSE(contains(refusal(), "current directory")) << "it was named";
}

TEST_F(Settings, AFileThatSomebodyElseCanWriteToIsNotReadUnlessItIsNamed) {
  const auto file = around_.write("interlock.json", R"({"url": "memory:theirs"})");
  for (const mode_t mode : {0666U, 0664U, 0620U, 0602U}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    EXPECT_TRUE(contains(refusal(), "others than its owner can write to it")) << refusal();
    EXPECT_TRUE(contains(refusal(), "chmod go-w")) << refusal();
    EXPECT_EQ(Config::load({.file = file}).url(), "memory:theirs");
  }
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_EQ(Config::load().url(), "memory:theirs");
}

TEST_F(Settings, AFileOfSomebodyElseIsSkippedWithAWarningUnlessItIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  around_.set("INTERLOCK_URL", "file://" + (around_.path() / "locks").string());
  const auto skipped = [&](const std::string& why) {
    const auto config = Config::load();
    EXPECT_TRUE(contains(config.url(), "file:")) << "the rest of the settings decides";
    EXPECT_EQ(config.file(), "");
    const auto& text = config.skipped_file();
    EXPECT_TRUE(contains(text, (around_.path() / "interlock.json").string())) << text;
    EXPECT_TRUE(contains(text, why)) << text;
    EXPECT_TRUE(contains(text, "INTERLOCK_CONFIG=/dev/null")) << text;
    const auto warnings = std::make_shared<Warnings>();
    EXPECT_EQ(connect(config, {.observer = warnings}).traits().warnings, std::vector{text});
    EXPECT_EQ(warnings->texts(), std::vector{text});
  };
  const auto file = around_.write("interlock.json", "not meant for us");
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  skipped("user 12345");
  EXPECT_TRUE(contains(refusal({.file = file}), "not JSON")) << "it was named";
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  skipped("user 12345");
  std::filesystem::remove(file);
  for (const auto* target : {"/etc/passwd", "missing", "interlock.json"}) {
    std::filesystem::create_symlink(target, file);
    ASSERT_EQ(lchown(file.c_str(), 12345, 12345), 0);
    skipped("user 12345");
    std::filesystem::remove(file);
  }
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  skipped("user 12345");
  std::filesystem::remove(file);
  ASSERT_EQ(mkdir(file.c_str(), 0700), 0);
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  skipped("user 12345");
}

TEST_F(Settings, AHardLinkIsReadOnlyWhereOthersCannotHaveMadeIt) {
  around_.write("mine", R"({"url": "memory:mine"})");
  std::filesystem::create_hard_link("mine", "interlock.json");
  EXPECT_EQ(Config::load().url(), "memory:mine");
  ASSERT_EQ(chmod(".", 01777), 0);
  EXPECT_EQ(Config::load().url(), "");
  EXPECT_TRUE(contains(Config::load().skipped_file(), "hard links"))
      << Config::load().skipped_file();
  std::filesystem::remove("mine");
  EXPECT_EQ(Config::load().url(), "memory:mine") << "it has one name, so its owner put it there";
}

TEST_F(Settings, ALinkIsNotFollowedUnlessItIsNamed) {
  around_.write("mine.json", R"({"url": "memory:mine"})");
  std::filesystem::create_symlink("mine.json", "interlock.json");
  EXPECT_TRUE(contains(refusal(), "is a symbolic link")) << refusal();
  EXPECT_TRUE(contains(refusal(), "INTERLOCK_CONFIG=")) << refusal();
  EXPECT_EQ(Config::load({.file = "interlock.json"}).url(), "memory:mine");
  around_.set("INTERLOCK_CONFIG", "interlock.json");
  EXPECT_EQ(Config::load().url(), "memory:mine");
}

TEST_F(Settings, AFileThatWasOnlyFoundReadsNoSecretOfThisMachine) {
  around_.set("SECRET", "geheim");
  const auto secret = around_.write("secret", "geheim").string();
  const auto nodes = percent_encode("redis://a,redis://b?password-file=" + secret);
  for (const auto& [url, what] : std::initializer_list<std::pair<std::string, std::string>>{
           {"redis://h?password-env=SECRET", "?password-env="},
           {"redis://h?password%2Dfile=" + secret, "?password-file="},
           {"etcd://me@h?password-file=" + secret, "?password-file="},
           {"redis+sentinel://h/m?sentinel-password-file=" + secret, "?sentinel-password-file="},
           {"redis+sentinel://h/m?sentinel-password-env=SECRET", "?sentinel-password-env="},
           {"rediss://h?cert=" + secret, "?cert="},
           {"etcds://h?cert=c&key=" + secret, "?cert="},
           {"rediss://h?key=" + secret, "?key="},
           {"postgres://h/d?passfile=" + secret, "?passfile="},
           {"postgresql://h/d?service=secret", "?service="},
           {"postgres://h/d?sslkey=" + secret, "?sslkey="},
           {"postgres://h/d?sslcert=" + secret, "?sslcert="},
           {"redlock:?nodes=" + nodes, "?password-file="}}) {
    const auto file = around_.write("interlock.json", "{\n\"url\": \"" + url + "\"}");
    const auto text = refusal();
    EXPECT_TRUE(contains(text, "interlock.json:2: url: " + what)) << url << ": " << text;
    EXPECT_TRUE(contains(text, "INTERLOCK_CONFIG=" + file.string())) << text;
    EXPECT_FALSE(contains(text, "geheim")) << text;
    EXPECT_EQ(Config::load({.file = file}).url(), url) << "it was named";
    EXPECT_EQ(Config::load({.url = "memory:x"}).url(), "memory:x") << "it does not count";
  }
}

TEST_F(Settings, AFileThatWasOnlyFoundGetsNoPasswordOfPostgresVariables) {
  around_.write("interlock.json", R"({"url": "postgres://h/d"})");
  EXPECT_EQ(Config::load().url(), "postgres://h/d");
  around_.set("PGPASSWORD", "geheim");
  EXPECT_TRUE(contains(refusal(), "PGPASSWORD")) << refusal();
  EXPECT_FALSE(contains(refusal(), "geheim")) << refusal();
  around_.write("interlock.json", R"({"url": "postgres://me:own@h/d"})");
  EXPECT_EQ(Config::load().url(), "postgres://me:own@h/d");
}

TEST_F(Settings, AFileThatIsNestedDeepIsAnErrorAndLittleMemory) {
  for (const auto* open : {"[", "{\"a\":"}) {
    std::string text = R"({"ConnectionStrings": {"Redis": "h:1", "x": )";
    while (text.size() < 1'000'000) text += open;
    EXPECT_TRUE(contains(refusal_of(text), "nested too deep")) << refusal();
  }
}

TEST_F(Settings, WhatSomebodyElseCanWriteToIsSaidToBeUnread) {
  const auto file = around_.write("interlock.json", "{}");
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_TRUE(contains(refusal(), "it was not read")) << refusal();
  EXPECT_FALSE(contains(refusal(), "was read because")) << refusal();
}

TEST_F(Settings, WhatHasNoEndIsNotRead) {
  ASSERT_EQ(mkfifo("interlock.json", 0600), 0);
  EXPECT_TRUE(contains(refusal(), "not a regular file")) << refusal();
  EXPECT_TRUE(contains(refusal({.file = "interlock.json"}), "not JSON")) << "nobody writes into it";
  std::filesystem::remove("interlock.json");
  EXPECT_TRUE(contains(refusal({.file = "/dev/zero"}), "not a regular file"));
  EXPECT_TRUE(contains(refusal({.file = "."}), "not a regular file"));
  const auto large = around_.write("large.json", std::string(3U << 20U, ' ') + "{}");
  EXPECT_TRUE(contains(refusal({.file = large}), "1 MiB"));
}

TEST_F(Settings, APipeThatIsNamedIsRead) {
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  std::thread writer([] { std::ofstream("pipe") << R"({"url": "memory:piped"})"; });
  Config config;
  // The writer may be late: then it ended before it began.
  EXPECT_TRUE(testing_support::eventually([&] {
    try {
      config = Config::load({.file = "pipe"});
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  writer.join();
  EXPECT_EQ(config.url(), "memory:piped");
}

TEST_F(Settings, ALinkToNowhereIsNoMissingFile) {
  std::filesystem::create_symlink("gone.json", "interlock.json");
  EXPECT_TRUE(contains(refusal(), "is a symbolic link")) << refusal();
}

TEST_F(Settings, OtherConnectionStringsAreLeftAlone) {
  around_.write("interlock.json",
                R"({"ConnectionStrings": {"Redis": "h:1", "Postgres": "Host=db;Password=x"}})");
  EXPECT_EQ(Config::load().url(), "redis://h:1");
  EXPECT_TRUE(contains(refusal_of(R"({"ConnectionStrings": {"Postgres": "Host=db"}})"),
                       "ConnectionStrings has \"Postgres\"; there is Redis"));
  EXPECT_TRUE(contains(refusal_of(R"({"ConnectionStrings": {"Redis": "h:1", "redis": "h:2"}})"),
                       "did you mean \"Redis\"?"));
  EXPECT_TRUE(contains(refusal_of("{\"ConnectionStrings\": {\"Redis\": \"a\",\n\"Redis\": \"b\"}}"),
                       ":2: \"Redis\" is there twice"));
}

TEST_F(Settings, AVeryLongKeyIsRefusedAtOnce) {
  EXPECT_TRUE(contains(refusal_of("{\"" + std::string(1'000'000, 'x') + "\": 1}"),
                       "there is no setting \"xxx"));
}

TEST_F(Settings, ARedisHostIsAHostAlone) {
  around_.set("REDIS_HOST", "h:6380");
  EXPECT_TRUE(contains(refusal(), "REDIS_PORT")) << refusal();
  around_.set("REDIS_HOST", "h\n6380");
  EXPECT_TRUE(contains(refusal(), "control character")) << refusal();
  for (const char* address : {"::1", "[::1]"}) {
    around_.set("REDIS_HOST", address);
    EXPECT_EQ(Config::load().url(), "redis://[::1]");
  }
}

TEST_F(Settings, WhatIsNotAFileOfSettingsIsRefusedWithItsLine) {
  EXPECT_TRUE(
      contains(refusal_of("{\n\"ttl\": \"10s\",\n}"), "interlock.json:3: this is not JSON"));
  EXPECT_TRUE(contains(refusal_of(""), "interlock.json:1: this is not JSON"))
      << "a file that was cut off is not one that says nothing";
  EXPECT_TRUE(contains(refusal_of("[]"), "one JSON object"));
  EXPECT_TRUE(
      contains(refusal_of("{\"ttl\": \"1s\",\n\"ttl\": \"2s\"}"), ":2: \"ttl\" is there twice"));
  EXPECT_TRUE(contains(refusal_of("{\"ttl\": \"1s\",\n\"distributedLockExpiry\": \"2s\"}"),
                       "set the same thing"));
  EXPECT_TRUE(contains(refusal_of(R"({"url": "memory:", "connectionString": "h:1"})"),
                       "set the same thing"));
  EXPECT_TRUE(contains(refusal_of(R"({"enableDistributedLocking": "yes"})"), "true or false"));
  EXPECT_TRUE(contains(refusal_of(R"({"label": null})"), "a text in quotes"));
  EXPECT_TRUE(contains(refusal_of(R"({"onUnavailable": "panic"})"), "\"error\" or \"memory\""));
  EXPECT_TRUE(contains(refusal_of(R"({"logLevel": "loud"})"), "\"debug\""));
  EXPECT_TRUE(contains(refusal_of(R"({"url": "nonsense and more"})"), "has to be a URL"));
}

TEST_F(Settings, AUrlInThePlaceOfANameIsNotShown) {
  for (const auto* text :
       {R"({"redis://:hunter2@host": "url"})", R"({"ConnectionStrings": {":hunter2@host": ""}})",
        R"({"honua": {"rasterCache": {"a:hunter2@b": 1, "a:hunter2@b": 2}}})"}) {
    const auto words = refusal_of(text);
    EXPECT_TRUE(contains(words, "***")) << words;
    EXPECT_FALSE(contains(words, "hunter2")) << words;
  }
}

TEST_F(Settings, TheVariablesOfATableStoreAreKnown) {  // row 4.1
  around_.set("REDIS_HOST", "redis.internal");
  EXPECT_EQ(Config::load().url(), "redis://redis.internal");
  around_.set("REDIS_PORT", "6380");
  around_.set("REDIS_DB", "2");
  EXPECT_EQ(Config::load().url(), "redis://redis.internal:6380/2");
  EXPECT_EQ(explained(Config::load(), "url").where, "REDIS_HOST, REDIS_PORT, REDIS_DB");
  around_.set("REDIS_PORT", "tcp://10.0.0.11:6379");  // as Kubernetes sets it
  EXPECT_EQ(Config::load().url(), "redis://redis.internal:6379/2");

  around_.set("LOCKING_BACKEND", "file");
  EXPECT_EQ(Config::load().url(), user_store_url());
  around_.set("LOCKING_BACKEND", "memory");
  EXPECT_EQ(Config::load().url(), "memory:interlock");
  around_.set("LOCKING_BACKEND", "redis");
  EXPECT_EQ(Config::load().url(), "redis://redis.internal:6379/2");
  around_.unset("REDIS_HOST");
  EXPECT_EQ(Config::load().url(), "redis://localhost:6379/2");
  around_.set("LOCKING_BACKEND", "zookeeper");
  EXPECT_TRUE(contains(refusal(), "LOCKING_BACKEND is \"memory\", \"file\" or \"redis\""));
  around_.set("INTERLOCK_URL", "memory:x");
  EXPECT_EQ(Config::load().url(), "memory:x") << "the whole address goes before its pieces";
  EXPECT_EQ(Config::load({.backend = "memory"}).url(), "memory:interlock");

  around_.unset("INTERLOCK_URL");
  around_.set("LOCKING_BACKEND", "redis");
  around_.set("REDIS_PORT", "many");
  EXPECT_TRUE(contains(refusal(), "REDIS_PORT: 'many'"));
  around_.unset("LOCKING_BACKEND");
  EXPECT_EQ(Config::load().url(), "") << "a port alone configures nothing";
}

TEST_F(Settings, PasswordsNeverShow) {
  const auto shows = [&](const std::string& secret) {
    std::string all = refusal();
    try {
      const auto config = Config::load();
      for (const auto& setting : config.explain()) all += setting.value + setting.where;
      for (const auto& warning : config.warnings()) all += warning;
      (void)connect(config);
    } catch (const Error& error) {
      all += error.what();
    }
    return contains(all, secret);
  };
  const std::string dead = "127.0.0.1:1";
  around_.set("INTERLOCK_URL", "redis://me:geheim@" + dead + "?timeout=200ms");
  EXPECT_FALSE(shows("geheim"));
  EXPECT_TRUE(contains(explained(Config::load(), "url").value, "me:***@127.0.0.1:1"));
  around_.set("INTERLOCK_URL",
              "redlock:?nodes=redis%3A%2F%2F%3Ageheim%40" + dead + "&timeout=200ms");
  EXPECT_FALSE(shows("geheim"));
  around_.set("INTERLOCK_URL", "geheim@host");
  EXPECT_FALSE(shows("geheim"));
  around_.unset("INTERLOCK_URL");
  around_.set("REDIS_HOST", "127.0.0.1");
  around_.set("REDIS_PORT", "1");
  around_.set("REDIS_PASSWORD", "geheim");
  EXPECT_FALSE(shows("geheim"));
  EXPECT_TRUE(contains(explained(Config::load(), "url").value, "password-env=REDIS_PASSWORD"));
  for (const auto* text :
       {R"({"url": "geheim"} "x")", R"({"url": "geheim@host"})",
        R"({"url": "host:6379,password=geheim"})", R"({"url": "redis://:geheim@h", "tt": 1})",
        R"({"url": "redis://:geheim%@h"})"}) {
    around_.write("interlock.json", text);
    EXPECT_NE(refusal(), "accepted") << text;
    EXPECT_FALSE(shows("geheim")) << refusal();
  }
}

TEST_F(Settings, NotConfiguredIsMemoryWithAWarning) {  // rows 3.4 and 3.8
  const auto warnings = std::make_shared<Warnings>();
  const auto config = Config::load();
  const auto locks = connect(config, {.observer = warnings});
  EXPECT_EQ(locks.traits().name, "memory");
  ASSERT_EQ(warnings->texts().size(), 1U);
  EXPECT_TRUE(contains(warnings->texts()[0], "in memory"));
  EXPECT_TRUE(contains(warnings->texts()[0], "INTERLOCK_URL"));
  EXPECT_EQ(locks.traits().warnings, config.warnings());

  const auto lease = Mutex(locks, "settings-test", config.options()).acquire();
  EXPECT_FALSE(Mutex(connect(config), "settings-test").try_acquire())
      << "two parts of one program exclude each other";
}

TEST_F(Settings, SwitchedOffIsMemorySilently) {  // row 3.4
  around_.write("interlock.json",
                R"({"enableDistributedLocking": false, "url": "redis://127.0.0.1:1"})");
  const auto warnings = std::make_shared<Warnings>();
  const auto locks = connect(Config::load(), {.observer = warnings});
  EXPECT_EQ(locks.traits().name, "memory");
  EXPECT_TRUE(warnings->texts().empty());
  EXPECT_TRUE(locks.traits().warnings.empty());
  EXPECT_TRUE(Mutex(locks, "switched-off").try_acquire());
}

TEST_F(Settings, ConfiguredIsWhatIsUsed) {
  around_.set("INTERLOCK_URL", "file://" + (around_.path() / "locks").string());
  const auto locks = connect(Config::load());
  EXPECT_EQ(locks.traits().name, "file");
  EXPECT_TRUE(locks.traits().warnings.empty());
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
  around_.set("INTERLOCK_URL", "abacus://host");
  EXPECT_THROW((void)connect(Config::load()), Error) << "a store that is none is not unreachable";
}

}  // namespace
