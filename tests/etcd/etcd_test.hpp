// What the tests of etcd share: clients here and in other processes, an onlooker, patience.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "process/child.hpp"
#include "servers/etcd_server.hpp"
#include "servers/proxy.hpp"
#include "waiting.hpp"

namespace interlock::etcd_tests {

using namespace std::chrono_literals;
using process::Child;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::still_held;
using testing_support::Waiting;

/// Comes back soon after the server does.
inline Options patient(Duration ttl = 600s) {
  return {.ttl = ttl, .retry = {.attempts = 400, .first = 20ms, .max = 200ms}};
}

/// One member, or three.
template <class Servers>
class EtcdTest : public testing::Test {
 protected:
  [[nodiscard]] Servers& servers() { return servers_; }
  [[nodiscard]] std::string url() const { return servers_.url(); }

  /// The resource as somebody sees it who is no part of what is tested. Servers may be away.
  [[nodiscard]] ResourceState look(const std::string& name) {
    if (!onlooker_) onlooker_ = std::make_unique<Client>(connect(url()));
    return testing_support::seen_by(*onlooker_, name);
  }
  [[nodiscard]] std::size_t holders(const std::string& name) { return look(name).holders.size(); }
  [[nodiscard]] std::size_t waiters(const std::string& name) { return look(name).waiters.size(); }

  [[nodiscard]] Waiting queue_up(const Mutex& mutex) {
    const auto before = waiters(mutex.resource());
    Waiting waiting(mutex);
    EXPECT_TRUE(eventually([&] { return waiting.over() || waiters(mutex.resource()) > before; }));
    return waiting;
  }
  /// A process that waits for the lock and holds it until it is told otherwise.
  [[nodiscard]] Child holder(const std::string& name, const std::string& ttl = "600s") const {
    return Child("holder", {url(), name, ttl, "exclusive"});
  }

 private:
  Servers servers_;
  std::unique_ptr<Client> onlooker_;
};

}  // namespace interlock::etcd_tests
