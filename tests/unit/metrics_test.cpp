// Row 0.11: lock metrics and wait times.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "interlock/metrics.hpp"
#include "waiting.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::Waiting;

// The value of the one sample that is written like this; -1 if there is none.
double sample(const std::string& text, const std::string& series) {
  const auto at = text.find("\n" + series + " ");
  if (at == std::string::npos) return -1;
  double value = -1;
  (void)std::from_chars(text.data() + at + series.size() + 2, text.data() + text.size(), value);
  return value;
}

struct MetricsTest : testing::Test {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>(MetricsOptions{
      .group = [](std::string_view name) { return std::string(name.substr(0, name.find(':'))); }});
  MemoryStore store{clock};
  Client client{store.open(), {.observer = metrics, .clock = clock}};
  Client other{store.open(), {.clock = clock}};

  [[nodiscard]] double now(const std::string& name, const std::string& more = "") const {
    return sample(metrics->text(),
                  name + "{store=\"memory\",node=\"" + node + "\",group=\"billing\"" + more + "}");
  }
  std::string node = "memory:";
  [[nodiscard]] double ended(const std::string& outcome) const {
    return now("interlock_acquisitions_total", ",outcome=\"" + outcome + "\"");
  }
};

// Row 0.11.
TEST_F(MetricsTest, WaitAndHoldTimesAreHistogramsAndWhatGoesOnIsAGauge) {
  auto held = std::make_optional(Mutex(other, "billing:1", {.ttl = 1h}).acquire());
  Waiting waiting(Mutex(client, "billing:1", {.ttl = 1h}));
  ASSERT_TRUE(eventually([&] { return now("interlock_waiting") == 1; }));
  ASSERT_TRUE(eventually(
      [&] { return other.inspect({.prefix = "b"}).resources.at(0).waiters.size() == 1; }));
  clock->advance(7s);
  held.reset();
  {
    auto lease = waiting.lease();
    EXPECT_EQ(now("interlock_waiting"), 0);
    EXPECT_EQ(now("interlock_held"), 1);
    clock->advance(200ms);
  }
  EXPECT_EQ(now("interlock_held"), 0);
  EXPECT_EQ(ended("granted"), 1);
  EXPECT_EQ(now("interlock_wait_seconds_bucket", ",le=\"5\""), 0);
  EXPECT_EQ(now("interlock_wait_seconds_bucket", ",le=\"10\""), 1);
  EXPECT_EQ(now("interlock_wait_seconds_bucket", ",le=\"+Inf\""), 1);
  EXPECT_EQ(now("interlock_wait_seconds_count"), 1);
  EXPECT_GE(now("interlock_wait_seconds_sum"), 7);
  EXPECT_EQ(now("interlock_hold_seconds_bucket", ",le=\"0.1\""), 0);
  EXPECT_EQ(now("interlock_hold_seconds_bucket", ",le=\"0.25\""), 1);
  EXPECT_NEAR(now("interlock_hold_seconds_sum"), 0.2, 1e-9);
}

TEST_F(MetricsTest, EachOutcomeHasItsCounter) {
  auto held = Mutex(other, "billing:1", {.ttl = 1h}).acquire();
  EXPECT_FALSE(Mutex(client, "billing:1").try_acquire());
  EXPECT_FALSE(Mutex(client, "billing:1").try_acquire_times({.attempts = 1}));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(Mutex(client, "billing:1").try_acquire_for(1h, stopped.get_token()));
  EXPECT_THROW((void)Semaphore(client, "billing:1", 3).acquire(), Error);
  {
    Waiting waiting(Mutex(client, "billing:1"), 5s);
    ASSERT_TRUE(eventually([&] { return now("interlock_waiting") == 1; }));
    ASSERT_TRUE(eventually([&] {
      clock->advance(1s);
      return waiting.over();
    }));
  }
  for (const char* outcome : {"busy", "exhausted", "cancelled", "refused", "timed_out"}) {
    EXPECT_EQ(ended(outcome), 1) << outcome;
  }
  EXPECT_EQ(ended("granted"), 0);
  EXPECT_EQ(now("interlock_waiting"), 0);
  EXPECT_EQ(now("interlock_wait_seconds_count"), 0) << "only what was granted";
}

TEST_F(MetricsTest, LossesRenewalsAndReconnectsAreCounted) {
  auto faulty = chaos(store.open());
  auto* faults = faulty.get();
  Client remote(std::move(faulty), {.observer = metrics, .clock = clock});
  node = remote.traits().where;
  {
    auto lease = Mutex(remote, "billing:1", {.ttl = 30s}).acquire();
    clock->advance(10s);
    ASSERT_TRUE(eventually([&] { return now("interlock_renewals_total") == 1; }));
    faults->set({.fail = 1.0});
    clock->advance(10s);
    ASSERT_TRUE(eventually([&] { return now("interlock_renewal_failures_total") >= 1; }));
    clock->advance(30s);
    ASSERT_TRUE(eventually([&] { return now("interlock_lost_total") == 1; }));
    EXPECT_EQ(now("interlock_held"), 0);
    faults->set({});
  }
  (void)remote.inspect();
  EXPECT_EQ(now("interlock_held"), 0) << "a lease ends once";
  EXPECT_EQ(now("interlock_hold_seconds_count"), 1);
  EXPECT_EQ(sample(metrics->text(),
                   "interlock_disconnects_total{store=\"memory\",node=\"" + node + "\"}"),
            1);
  EXPECT_EQ(
      sample(metrics->text(), "interlock_reconnects_total{store=\"memory\",node=\"" + node + "\"}"),
      1);
}

TEST_F(MetricsTest, HeldIsRightAlsoWithTokensUpgradesAndPartsGivenBack) {
  auto reading = RwLock(client, "billing:config").read();
  EXPECT_TRUE(reading.try_upgrade());
  reading.downgrade();
  EXPECT_EQ(now("interlock_held"), 1);
  reading.release();
  EXPECT_EQ(now("interlock_held"), 0);

  auto token = Mutex(client, "billing:2", {.ttl = 10min}).acquire().detach();
  EXPECT_EQ(now("interlock_held"), 0);
  {
    auto again = client.adopt(token);
    EXPECT_EQ(now("interlock_held"), 1);
  }
  EXPECT_EQ(now("interlock_held"), 0);

  auto both = MultiLock(client, {"billing:3", "archive:3"}).acquire();
  EXPECT_EQ(now("interlock_held"), 1) << "it counts for the group of the first that was named";
  both.release({"billing:3"});
  both.release();
  EXPECT_EQ(now("interlock_held"), 0);
  EXPECT_EQ(metrics->text().find("archive"), std::string::npos);
}

TEST_F(MetricsTest, TheStateOfAStoreCountsEveryClientAndNothingTwice) {
  auto row = Mutex(client, "orders/17", {.ttl = 1h}).acquire();
  clock->advance(30s);
  auto reading = RwLock(other, "config").read();
  auto also = RwLock(client, "config").read();
  Waiting waiting(Mutex(client, "orders/17"));
  ASSERT_TRUE(eventually([&] {
    return other.inspect({.resources = {"orders/17"}}).resources.at(0).waiters.size() == 1;
  }));
  clock->advance(5s);
  const auto text = "\n" + to_metrics(other.inspect(), other.traits());
  EXPECT_EQ(sample(text, "interlock_store_locks{store=\"memory\",node=\"memory:\"}"), 2)
      << "not orders itself";
  EXPECT_EQ(sample(text, "interlock_store_holders{store=\"memory\",node=\"memory:\"}"), 3);
  EXPECT_EQ(sample(text, "interlock_store_waiters{store=\"memory\",node=\"memory:\"}"), 1);
  EXPECT_EQ(sample(text, "interlock_store_oldest_hold_seconds{store=\"memory\",node=\"memory:\"}"),
            35);
  EXPECT_EQ(sample(text, "interlock_store_longest_wait_seconds{store=\"memory\",node=\"memory:\"}"),
            5);
  EXPECT_EQ(text.find("orders"), std::string::npos);
  const auto named = to_metrics(other.inspect(), other.traits(), true);
  EXPECT_EQ(
      sample(named, "interlock_lock_holders{store=\"memory\",node=\"memory:\",lock=\"config\"}"),
      2);
  EXPECT_EQ(
      sample(named, "interlock_lock_waiters{store=\"memory\",node=\"memory:\",lock=\"orders/17\"}"),
      1);
}

TEST(Metrics, ShowsNoNamesUnlessTold) {
  const auto metrics = std::make_shared<Metrics>();
  const Client client(memory_store(), {.observer = metrics});
  { auto lease = Mutex(client, "secret-customer-17").acquire(); }
  EXPECT_EQ(metrics->text().find("customer"), std::string::npos);
  EXPECT_EQ(sample(metrics->text(),
                   "interlock_hold_seconds_count{store=\"memory\",node=\"memory:\",group=\"\"}"),
            1);
}

TEST(Metrics, WithGroupsTheStoreItselfIsNone) {
  const auto metrics = std::make_shared<Metrics>(
      MetricsOptions{.group = [](std::string_view) { return std::string("mine"); }});
  const Client client(memory_store(), {.observer = metrics});
  EXPECT_EQ(metrics->text().find("group="), std::string::npos);
  { auto lease = Mutex(client, "k").acquire(); }
  EXPECT_NE(metrics->text().find("group=\"mine\""), std::string::npos);
  EXPECT_EQ(metrics->text().find("group=\"\""), std::string::npos);
  EXPECT_EQ(
      sample(metrics->text(), "interlock_reconnects_total{store=\"memory\",node=\"memory:\"}"), 0);
}

TEST(Metrics, GroupsDoNotGrowWithoutBound) {
  const auto metrics = std::make_shared<Metrics>(
      MetricsOptions{.group = [](std::string_view name) { return std::string(name); }});
  const Client client(memory_store(), {.observer = metrics});
  constexpr int kNames = 1000;
  for (int i = 0; i < kNames; ++i) {
    auto lease = Mutex(client, "lock-" + std::to_string(i)).acquire();
  }
  const auto text = metrics->text();
  const std::regex count("interlock_hold_seconds_count\\{[^}]*\\} ([0-9]+)");
  std::size_t series = 0;
  int sum = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), count), end; it != end; ++it) {
    ++series;
    sum += std::stoi((*it)[1]);
  }
  EXPECT_LE(series, Metrics::kMostGroups + 1);
  EXPECT_EQ(sum, kNames) << "and none is lost";
  EXPECT_GT(
      sample(text,
             "interlock_hold_seconds_count{store=\"memory\",node=\"memory:\",group=\"other\"}"),
      800);
}

TEST(Metrics, TwoServersOfOneKindAreToldApart) {
  const auto metrics = std::make_shared<Metrics>();
  const Client one(memory_store(), {.observer = metrics});
  const Client two(chaos(memory_store()), {.observer = metrics});  // at another address
  const auto first = Mutex(one, "k").acquire();
  const auto second = Mutex(two, "k").acquire();
  const auto third = Mutex(two, "l").acquire();
  const auto held = [&](const Client& at) {
    return sample(metrics->text(),
                  "interlock_held{store=\"memory\",node=\"" + at.traits().where + "\",group=\"\"}");
  };
  ASSERT_NE(one.traits().where, two.traits().where);
  EXPECT_EQ(held(one), 1);
  EXPECT_EQ(held(two), 2);
  const auto of_two = "{store=\"memory\",node=\"" + two.traits().where + "\"}";
  EXPECT_EQ(sample(to_metrics(two.inspect(), two.traits()), "interlock_store_locks" + of_two), 2);
}

TEST(Metrics, AGroupFunctionThatThrowsCostsANumberAndNoLock) {
  const auto metrics = std::make_shared<Metrics>(MetricsOptions{
      .group = [](std::string_view) -> std::string { throw std::runtime_error("no"); }});
  const Client client(memory_store(), {.observer = metrics});
  auto lease = Mutex(client, "k").acquire();
  EXPECT_EQ(lease.release(), LeaseState::released);
}

TEST(Metrics, ManyThreadsCountExactlyAlsoWhileOthersRead) {
  const auto metrics = std::make_shared<Metrics>(MetricsOptions{
      .group = [](std::string_view name) { return std::string(name.substr(0, 1)); }});
  const Client client(memory_store(), {.observer = metrics});
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          auto lease = Mutex(client, std::to_string(i % 3) + "-" + std::to_string(t)).acquire();
          if (i % 100 == 0) (void)metrics->text();
        }
      });
    }
  }
  double granted = 0;
  for (const char* group : {"0", "1", "2"}) {
    const auto of = std::string("{store=\"memory\",node=\"memory:\",group=\"") + group + "\"";
    granted +=
        sample(metrics->text(), "interlock_acquisitions_total" + of + ",outcome=\"granted\"}");
    EXPECT_EQ(sample(metrics->text(), "interlock_held" + of + "}"), 0);
    EXPECT_EQ(sample(metrics->text(), "interlock_waiting" + of + "}"), 0);
  }
  EXPECT_EQ(granted, kThreads * kEach);
}

TEST(Metrics, PrometheusReadsThemWithNothingToSay) {
  // Groups that would break the format, if they could.
  const auto metrics = std::make_shared<Metrics>(MetricsOptions{.group = [](std::string_view name) {
    return name == "a" ? std::string("say \"hi\" \\ {x}") : std::string("bad \xff\n bytes");
  }});
  const Client client(memory_store(), {.observer = metrics});
  { auto lease = Mutex(client, "a").acquire(); }
  { auto lease = Mutex(client, "b").acquire(); }
  const auto path =
      std::filesystem::temp_directory_path() / ("interlock-metrics-" + Owner::random().to_string());
  std::ofstream(path) << metrics->text();
  FILE* tool = ::popen(("promtool check metrics <" + path.string() + " 2>&1").c_str(), "r");
  ASSERT_NE(tool, nullptr);
  std::string said;
  for (int c = std::fgetc(tool); c != EOF; c = std::fgetc(tool)) said += static_cast<char>(c);
  EXPECT_EQ(::pclose(tool), 0) << said << "(promtool is in Debian's prometheus: tools/deps tests)";
  EXPECT_EQ(said, "");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace interlock
