// Some Redis servers that a Redlock is made of, for tests that kill them and look into them.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "interlock/stores.hpp"
#include "servers/redis_server.hpp"

namespace interlock::redlock_tests {

using namespace std::chrono_literals;

/// Servers that know nothing of each other, and what each of them has.
class RedlockServers : public testing::Test {
 protected:
  explicit RedlockServers(std::size_t nodes = 3) {
    for (std::size_t i = 0; i < nodes; ++i)
      nodes_.push_back(std::make_unique<servers::RedisServer>());
  }

  [[nodiscard]] std::string url(const std::string& more = "") const {
    std::string text = "redlock://";
    for (const auto& node : nodes_) {
      text += (text.ends_with('/') ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(node->port());
    }
    return text + "?prefix=rl:" + more;
  }
  /// All nodes but one, in whose place nobody answers.
  [[nodiscard]] std::unique_ptr<Backend> store_without(std::size_t without) const {
    std::string text = "redlock://";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto port = node == without ? servers::free_port() : nodes_[node]->port();
      text += (node == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
    }
    return stores::open(text + "?prefix=rl:&timeout=1m");
  }
  /// What this node alone knows: it is a Redis like any other.
  [[nodiscard]] std::vector<ResourceState> on(std::size_t node) const {
    return connect(nodes_[node]->url() + "?prefix=rl:").inspect().resources;
  }
  [[nodiscard]] bool holds(std::size_t node, const Owner& owner) const {
    for (const auto& state : on(node)) {
      for (const auto& holder : state.holders) {
        if (holder.owner == owner) return true;
      }
    }
    return false;
  }
  /// It counts in a majority.
  [[nodiscard]] bool counts(std::size_t node) const {
    const auto ask =
        "redis-cli -p " + std::to_string(nodes_[node]->port()) + " HGET '{rl:}:node' ready";
    const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(ask.c_str(), "r"), &::pclose);
    return std::fgetc(answer.get()) == '1';
  }
  /// Empty, since nothing is saved.
  void restart_empty(std::size_t node) {
    nodes_[node]->stop();
    nodes_[node]->start();
  }

  std::vector<std::unique_ptr<servers::RedisServer>> nodes_;
};

/// Asks a store in the background, as the core does.
inline std::future<Answer> ask(Backend& store, const Claim& claim, Duration within) {
  const auto promise = std::make_shared<std::promise<Answer>>();
  store.acquire(claim, false, {.deadline = BootClock::now() + within},
                [promise](Answer answer) { promise->set_value(std::move(answer)); });
  return promise->get_future();
}

inline Claim claim_on(const std::string& name) {
  return {.owner = Owner::random(),
          .parts = {{.resource = name}},
          .ttl = 60s,
          .who = std::make_shared<const Who>(Who{.host = "here"})};
}

/// What is held there by a majority.
inline void release(Backend& store, const Claim& claim) {
  std::promise<Verdict> done;
  store.release(claim, {.deadline = BootClock::now() + 60s},
                [&](const Answer& answer) { done.set_value(answer.verdict); });
  EXPECT_EQ(done.get_future().get(), Verdict::granted);
}

}  // namespace interlock::redlock_tests
