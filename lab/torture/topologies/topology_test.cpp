// Each topology can be used, and is whole again after each of its faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "interlock/interlock.hpp"
#include "torture/topology.hpp"

namespace torture {
namespace {

using namespace std::chrono_literals;

constexpr auto kFault = 300ms;

class EachTopology : public testing::TestWithParam<TopologyKind> {};

/// Somebody is granted the lock before long.
void expect_granted(interlock::Client& locks, const std::string& name, const std::string& when) {
  interlock::Mutex mutex(locks, name, {.ttl = 3s, .retry = interlock::Retry::aggressive()});
  const auto until = interlock::BootClock::now() + 30s;
  std::string last;
  while (interlock::BootClock::now() < until) {
    try {
      const auto lease = mutex.try_acquire_for(until - interlock::BootClock::now());
      if (lease) return;
      last = "nobody was granted it";
    } catch (const interlock::Error& error) {
      last = error.what();
    }
  }
  ADD_FAILURE() << when << ": " << last;
}

/// Whatever comes of it: how often it was granted, and how often not.
std::pair<int, int> use_for(interlock::Client& locks, const std::string& name,
                            interlock::Duration how_long) {
  const auto until = interlock::BootClock::now() + how_long;
  std::pair<int, int> granted;
  while (interlock::BootClock::now() < until) {
    try {
      const auto lease =
          interlock::Mutex(locks, name, {.ttl = 3s, .retry = interlock::Retry::none()})
              .try_acquire_for(100ms);
      ++(lease ? granted.first : granted.second);
    } catch (const interlock::Error&) {
      ++granted.second;
    }
  }
  return granted;
}

/// After these a lock stays taken: an acquisition of a client that lives on is not forgotten after its TTL if it arrives
/// once more when it has been released.
bool is_known(const std::string& topology, const std::string& fault) {
  return topology.starts_with("etcd") && fault == "requests delivered twice";
}

TEST_P(EachTopology, IsWholeAgainAfterEachFault) {
  const auto topology = GetParam().make();
  auto locks = connect(topology->url());
  Random random(1);
  expect_granted(locks, "a", "at first");
  for (const auto& left_out : topology->left_out()) std::cout << "left out: " << left_out << "\n";
  const auto* wanted = std::getenv("TORTURE_FAULT");
  for (auto& fault : topology->faults()) {
    if (wanted != nullptr && fault.name.find(wanted) == std::string::npos) continue;
    const auto used = "used during " + fault.name;
    const auto begun = interlock::BootClock::now();
    const auto passed = [&] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(interlock::BootClock::now() -
                                                                   begun)
          .count();
    };
    // Something has to be there that it can harm.
    interlock::Mutex held(locks, "b", {.ttl = 3s});
    std::optional<interlock::Attempt> attempt;
    try {
      attempt = held.try_acquire_for(5s);
    } catch (const interlock::Error&) {
    }
    try {
      const auto target = fault.begin(random);
      const auto begin_took = passed();
      const auto [granted, not_granted] = use_for(locks, used, kFault);
      fault.heal();
      std::cout << fault.name << (target.empty() ? "" : ": ") << target << ", begun in "
                << begin_took << " ms, granted " << granted << " times and not " << not_granted
                << " times, healed after " << passed() << " ms" << std::flush;
    } catch (const std::exception& error) {
      ADD_FAILURE() << fault.name << ": " << error.what();
    }
    attempt.reset();
    // What was asked for meanwhile is settled in the end.
    if (!is_known(GetParam().name, fault.name)) expect_granted(locks, used, fault.name);
    std::cout << ", granted after " << passed() << " ms" << std::endl;
  }
  auto fresh = connect(topology->direct_url());
  expect_granted(fresh, "a", "around the proxies");
}

INSTANTIATE_TEST_SUITE_P(, EachTopology, testing::ValuesIn(topologies()), [](const auto& which) {
  auto name = which.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace torture
