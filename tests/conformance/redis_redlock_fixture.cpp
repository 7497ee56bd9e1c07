// Redlock over three nodes, five, and three of which one is dead. The servers are started once, and
// each test has a prefix of its own.
#include <memory>
#include <vector>

#include "conformance/suite.hpp"
#include "servers/redis_server.hpp"

namespace interlock::conformance {
namespace {

template <std::size_t Nodes, bool OneDead>
class RedlockFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override {
    std::string url = "redlock://";
    for (const auto& server : servers()) {
      url += (url.ends_with('/') ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(server->port());
    }
    return stores::open(url + "?prefix=" + prefix_);
  }

  void restart() override {
    for (std::size_t i = OneDead ? 1 : 0; i < Nodes; ++i) servers()[i]->restart();
  }

 private:
  using Servers = std::vector<std::unique_ptr<servers::RedisServer>>;

  static Servers& servers() {
    static Servers all = [] {
      Servers started;
      for (std::size_t i = 0; i < Nodes; ++i) {
        started.push_back(std::make_unique<servers::RedisServer>(
            std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "no"}));
      }
      if (OneDead) started.front()->stop();
      return started;
    }();
    return all;
  }

  const std::string prefix_ = "t" + Owner::random().brief() + ":";
};

[[maybe_unused]] const bool kThree = add_store<RedlockFixture<3, false>>("redis_redlock3");
[[maybe_unused]] const bool kFive = add_store<RedlockFixture<5, false>>("redis_redlock5");
[[maybe_unused]] const bool kTwoOfThree =
    add_store<RedlockFixture<3, true>>("redis_redlock3_one_dead");

}  // namespace
}  // namespace interlock::conformance
