// Many processes at once: exclusion, order, and nothing left behind, kills included.
#include <fstream>
#include <iostream>
#include <random>

#include "process/child.hpp"

namespace interlock::process {
namespace {

using Crowds = ProcessTest;

TEST_F(Crowds, EightProcessesLoseNoIncrement) {
  const auto file = (directory() / "counter").string();
  std::vector<Child> adders;
  for (int i = 0; i < 8; ++i)
    adders.emplace_back("adder", std::vector<std::string>{url(), "r", file, "25"});
  for (auto& adder : adders) EXPECT_EQ(adder.wait(), 0);
  int sum = 0;
  std::ifstream(file) >> sum;
  EXPECT_EQ(sum, 8 * 25);
}

TEST_F(Crowds, SixteenProcessesAreServedStrictlyInOrderOfArrival) {
  const auto log = (directory() / "log").string();
  auto held = Mutex(locks(), "r").acquire();
  std::vector<Child> line;
  std::string expected;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto id = std::to_string(i);
    line.emplace_back("queuer", std::vector<std::string>{url(), "r", log, id});
    ASSERT_TRUE(eventually([&] { return waiters("r") == i + 1; }));
    expected += "enters " + id + "\nleaves " + id + "\n";
  }
  held.release();
  for (auto& next : line) EXPECT_EQ(next.wait(), 0);
  std::ifstream file(log);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), expected);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Crowds, AFloodWithKillsHasNoOverlapAndLeavesNothing) {
  const auto* given = std::getenv("INTERLOCK_TEST_SEED");
  const auto seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto start = [&] {
    return Child("flooder", {url(), directory().string(), "200", std::to_string(random())});
  };
  std::vector<Child> flood;
  for (int i = 0; i < 8; ++i) flood.push_back(start());
  for (int kills = 0; kills < 12; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 80));
    auto& victim = flood[random() % flood.size()];
    victim.kill();
    victim = start();
  }
  for (auto& child : flood) EXPECT_EQ(child.wait(), 0) << child.line();

  // The killed ones' records go when somebody meets them, or by themselves.
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(Mutex(locks(), "flood:" + std::to_string(i)).try_acquire_for(kPatience));
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::process
