// Many callers in several processes want the same value, which is not there.
#pragma once

#include "file_cache.hpp"
#include "process/child.hpp"

namespace interlock::process {

/// They are one run, and everybody gets its value.
inline void expect_one_run(const std::string& url, const std::filesystem::path& directory) {
  std::vector<Child> crowd;
  for (int i = 0; i < 3; ++i) {
    crowd.emplace_back("flyer", std::vector<std::string>{url, directory.string(), "100", "2s"});
    crowd.back().after("ready");
  }
  const auto began = BootClock::now();
  for (auto& child : crowd) child.tell("go");
  for (auto& child : crowd) EXPECT_EQ(child.after("done "), "100");
  const auto took = BootClock::now() - began;
  for (auto& child : crowd) EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(testing_support::FileCache(directory).runs(), 1);
  // Generous, as machines are loaded: bench/single_flight_bench has the figure.
  EXPECT_LT(took, 10s);
  testing::Test::RecordProperty(
      "milliseconds", std::to_string(std::chrono::round<std::chrono::milliseconds>(took).count()));
}

/// The one that generates is killed, and another one does it.
inline void expect_another_run(const std::string& url, const std::filesystem::path& directory) {
  const std::vector<std::string> slow{url, directory.string(), "1", "1h"};
  const std::vector<std::string> quick{url, directory.string(), "10", "1ms"};
  Child first("flyer", slow);
  first.tell("go");
  first.after("generates");
  Child second("flyer", quick);
  second.tell("go");
  EXPECT_TRUE(eventually([&] {
    const auto locks = connect(url);
    const auto seen = locks.inspect({.resources = {"single-flight:k"}}).resources;
    return !seen.empty() && !seen[0].waiters.empty();
  }));
  first.kill();
  EXPECT_EQ(second.after("done "), "10");
  EXPECT_EQ(testing_support::FileCache(directory).runs(), 2);
}

}  // namespace interlock::process
