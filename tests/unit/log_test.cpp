// Row 3.8: log lines for start-up, attempt, acquired, found after waiting, timeout; structured.
#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "eventually.hpp"
#include "interlock/config.hpp"
#include "interlock/interlock.hpp"
#include "interlock/log.hpp"
#include "surroundings.hpp"
#include "waiting.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::Waiting;

class Lines {
 public:
  LogSink sink() {
    return [this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::string(to_string(level)) + " " + std::string(line));
    };
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // The one line that begins like this.
  std::string the(const std::string& beginning) {
    std::vector<std::string> found;
    for (const auto& line : all()) {
      if (line.starts_with(beginning)) found.push_back(line);
    }
    EXPECT_EQ(found.size(), 1U) << beginning << " in " << testing::PrintToString(all());
    return found.empty() ? "" : found.front();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

bool has(const std::string& line, const std::string& part) {
  return (line + " ").find(" " + part + " ") != std::string::npos;
}

struct LogTest : testing::Test {
  Lines lines;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  MemoryStore store{clock};
  Client client{
      store.open(),
      {.observer = std::make_shared<Log>(lines.sink(), LogOptions{.level = LogLevel::debug}),
       .clock = clock}};
  Client other{store.open(), {.clock = clock}};
};

TEST(Log, AWarningHasNoReasonAsNothingFailed) {
  Lines lines;
  Log log(lines.sink());
  const Claim none;
  const Traits traits;
  const Error warning(Errc::refused, "this is risky");
  log.on({.event = Event::warned, .claim = none, .error = &warning, .store = &traits});
  const auto line = lines.the("warning event=warned");
  EXPECT_NE(line.find("this is risky"), std::string::npos) << line;
  EXPECT_EQ(line.find("reason="), std::string::npos) << line;
}

TEST(Events, AreSpeltAsInLogs) {
  EXPECT_EQ(to_string(Event::timed_out), "timed_out");
  EXPECT_EQ(to_string(Event::store_back), "store_back");
}

TEST_F(LogTest, StartUpAttemptAcquiredAndReleasedAreALineEach) {  // row 3.8
  auto lease = Mutex(client, "nightly", {.ttl = 30s, .label = "the report"}).acquire();
  const auto owner = "owner=" + client.inspect().resources.at(0).holders.at(0).owner.brief();
  clock->advance(1500ms);
  lease.release();
  EXPECT_TRUE(has(lines.the("info event=opened"), "store=memory:"));
  const auto asked = lines.the("debug event=asked");
  EXPECT_TRUE(has(asked, "lock=nightly")) << asked;
  EXPECT_TRUE(has(asked, owner)) << asked;
  EXPECT_TRUE(has(asked, "label=\"the report\"")) << asked;
  EXPECT_TRUE(has(asked, "ttl_ms=30000")) << asked;
  const auto granted = lines.the("debug event=granted");
  EXPECT_TRUE(has(granted, "waited_ms=0")) << granted;
  EXPECT_TRUE(has(granted, owner)) << granted;
  EXPECT_TRUE(has(lines.the("debug event=released"), "held_ms=1500"));
}

// Row 3.8: the line at the start says how long locks are waited for, and how long they last.
TEST(Log, AProgramThatConnectsBySettingsSaysItsTimesAtTheStart) {
  testing_support::Surroundings around;
  Lines lines;
  const auto settings = [&](const std::string& text) {
    around.write("interlock.json", text);
    (void)connect(Config::load(), {.observer = std::make_shared<Log>(lines.sink())});
  };
  settings(R"({"url": "memory:", "distributedLockTimeout": "00:05:00",
               "distributedLockExpiry": "00:10:00"})");
  const auto line = lines.the("info event=opened");
  EXPECT_TRUE(has(line, "limit_ms=300000")) << line;
  EXPECT_TRUE(has(line, "ttl_ms=600000")) << line;
  EXPECT_TRUE(has(line, "store=memory:")) << line;
}

TEST_F(LogTest, ATimeoutIsAWarningAndABusyTryIsNot) {  // row 3.8
  auto held = Mutex(other, "k", {.ttl = 1h}).acquire();
  EXPECT_FALSE(Mutex(client, "k").try_acquire());
  EXPECT_TRUE(has(lines.the("debug event=timed_out"), "reason=busy"));
  Waiting waiting(Mutex(client, "k"), 5s);
  ASSERT_TRUE(eventually([&] { return !waiting.over() && lines.all().size() >= 5; }));
  EXPECT_TRUE(has(lines.the("debug event=queued"), "ahead=0"));
  clock->advance(5s);
  EXPECT_FALSE(waiting.attempt());
  const auto line = lines.the("warning event=timed_out");
  EXPECT_TRUE(has(line, "lock=k")) << line;
  EXPECT_TRUE(has(line, "waited_ms=5000")) << line;
  EXPECT_TRUE(has(line, "limit_ms=5000")) << line;
  EXPECT_TRUE(has(line, "reason=timed_out")) << line;
  EXPECT_NE(line.find("error=\"somebody else had it for all of 5s\""), std::string::npos) << line;
}

TEST_F(LogTest, FoundAfterWaitingIsWorthKnowing) {
  client.tell(Event::found, "tile:7", 3s);
  const auto line = lines.the("info event=found");
  EXPECT_TRUE(has(line, "lock=tile:7")) << line;
  EXPECT_TRUE(has(line, "waited_ms=3000")) << line;
}

TEST_F(LogTest, ALossIsAnError) {
  auto lease = Mutex(client, "k", {.ttl = 30s, .renew = false}).acquire();
  clock->advance(31s);
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::lost; }));
  (void)lease.release();
  const auto line = lines.the("error event=lost");
  EXPECT_TRUE(has(line, "held_ms=31000")) << line;
}

TEST_F(LogTest, SeveralLocksAreOneLine) {
  { auto lease = MultiLock(client, {"b", "a/x"}).acquire(); }
  const auto line = lines.the("debug event=granted");
  EXPECT_TRUE(has(line, "lock=b")) << "the first that was named: " << line;
  EXPECT_TRUE(has(line, "locks=2")) << line;
}

TEST_F(LogTest, LeavesOutWhatMattersLess) {
  Lines quiet;
  const Client calm(store.open(),
                    {.observer = std::make_shared<Log>(quiet.sink()), .clock = clock});
  { auto lease = Mutex(calm, "k").acquire(); }
  ASSERT_EQ(quiet.all().size(), 1U);
  EXPECT_TRUE(quiet.all().at(0).starts_with("info event=opened"));
}

TEST_F(LogTest, OddNamesCanNotForgeALineInEitherFormat) {
  Lines json;
  const Client as_json(
      store.open(),
      {.observer = std::make_shared<Log>(
           json.sink(), LogOptions{.level = LogLevel::debug, .format = LogFormat::json}),
       .clock = clock});
  const std::string name = "a b\" lock=\"x\\y=🔒";
  { auto lease = Mutex(as_json, name).acquire(); }
  { auto lease = Mutex(client, name).acquire(); }
  EXPECT_NE(lines.the("debug event=granted").find(R"(lock="a b\" lock=\"x\\y=🔒" owner=)"),
            std::string::npos)
      << lines.the("debug event=granted");
  for (const auto& line : json.all()) {
    const auto record = nlohmann::json::parse(line.substr(line.find('{')));
    ASSERT_TRUE(record.contains("event")) << line;
    if (record["event"] == "granted") {
      EXPECT_EQ(record["lock"], name);
      EXPECT_EQ(record["waited_ms"], 0);
    }
  }
  // A server's words may be anything.
  const Error strange(Errc::unreachable, "line one\nevent=granted \xff");
  Log(lines.sink())
      .on({.event = Event::store_down, .claim = {}, .error = &strange, .store = &client.traits()});
  EXPECT_EQ(lines.the("warning event=store_down").find('\n'), std::string::npos);
  Log(json.sink(), {.format = LogFormat::json})
      .on({.event = Event::store_down, .claim = {}, .error = &strange, .store = &client.traits()});
  const auto line = json.the("warning {\"event\":\"store_down\"");
  EXPECT_TRUE(nlohmann::json::accept(line.substr(line.find('{')))) << line;
}

TEST_F(LogTest, NeverShowsAWholeOwnerAndASinkThatThrowsCostsNoLock) {
  auto lease = Mutex(client, "k").acquire();
  const auto owner = client.inspect().resources.at(0).holders.at(0).owner.to_string();
  for (const auto& line : lines.all()) EXPECT_EQ(line.find(owner), std::string::npos) << line;
  const Client broken(
      store.open(), {.observer = std::make_shared<Log>(
                         [](LogLevel, std::string_view) { throw std::runtime_error("disk full"); },
                         LogOptions{.level = LogLevel::debug}),
                     .clock = clock});
  EXPECT_EQ(Mutex(broken, "other").acquire().release(), LeaseState::released);
}

}  // namespace
}  // namespace interlock
