// A Redis server of its own for every test, a console to give it orders, and clients in this
// process and in others.
#pragma once

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "process/child.hpp"
#include "servers/proxy.hpp"
#include "servers/redis_server.hpp"
#include "waiting.hpp"

namespace interlock::redis_tests {

using namespace std::chrono_literals;
using process::Child;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::still_held;
using testing_support::Waiting;

/// "About a second" on a machine that has other things to do as well. The TTL in such tests is ten
/// minutes.
inline constexpr Duration kAboutASecond = 5s;

/// What an administrator types. One at a time; connects again when it has to.
class Console {
 public:
  explicit Console(int port) : port_(port) {}

  /// The reply as text; the elements of an array as lines. Errors as they are, "(nothing)" if there
  /// is no server.
  std::string operator()(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!link_ || link_->err != 0) link_.reset(redisConnect("127.0.0.1", port_));
      if (!link_ || link_->err != 0) continue;
      auto* raw = static_cast<redisReply*>(redisCommandArgv(
          link_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
      if (raw == nullptr) continue;
      const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(raw, freeReplyObject);
      return to_text(*reply);
    }
    return "(nothing)";
  }
  std::string operator()(const std::string& line) {
    std::vector<std::string> words(1);
    for (const char c : line) {
      if (c == ' ') {
        words.emplace_back();
      } else {
        words.back() += c;
      }
    }
    return (*this)(words);
  }

 private:
  struct Free {
    void operator()(redisContext* link) const noexcept { redisFree(link); }
  };
  static std::string to_text(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
    if (reply.type != REDIS_REPLY_ARRAY)
      return reply.str == nullptr ? "" : std::string(reply.str, reply.len);
    std::string lines;
    for (std::size_t i = 0; i < reply.elements; ++i) {
      if (i > 0) lines += '\n';
      lines += to_text(*reply.element[i]);
    }
    return lines;
  }

  int port_;
  std::unique_ptr<redisContext, Free> link_;
};

class RedisTest : public testing::Test {
 protected:
  explicit RedisTest(std::vector<std::string> options = {}) : server_(std::move(options)) {}

  [[nodiscard]] servers::RedisServer& server() { return server_; }
  [[nodiscard]] const servers::RedisServer& server() const { return server_; }
  [[nodiscard]] Console& console() { return console_; }
  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] static std::string url(const servers::Proxy& proxy) {
    return "redis://127.0.0.1:" + std::to_string(proxy.port());
  }
  /// An onlooker that is not a part of what is tested.
  [[nodiscard]] const Client& onlooker() {
    if (!onlooker_) onlooker_ = std::make_unique<Client>(connect(url()));
    return *onlooker_;
  }
  [[nodiscard]] ResourceState look(const std::string& name) {
    return testing_support::seen_by(onlooker(), name);
  }
  [[nodiscard]] std::size_t holders(const std::string& name) { return look(name).holders.size(); }
  [[nodiscard]] std::size_t waiters(const std::string& name) { return look(name).waiters.size(); }

  /// All keys of the server: of an idle store, only the counter behind the fences.
  [[nodiscard]] std::string keys() { return console_("KEYS *"); }
  static constexpr auto kOnlyTheFence = "{interlock:}:fence";
  [[nodiscard]] bool only_the_fence_is_left() {
    const auto left = keys();
    return left.empty() || left == kOnlyTheFence;
  }

  /// A process that waits for the lock and holds it until it is told otherwise.
  [[nodiscard]] Child holder(const std::string& name, const std::string& ttl = "600s") const {
    return Child("holder", {url(), name, ttl, "exclusive"});
  }
  /// The same, and it is in the queue, and can be woken.
  [[nodiscard]] Child queued_holder(const std::string& name, const std::string& ttl = "600s") {
    const auto before = waiters(name);
    const auto heard = listeners();
    auto child = holder(name, ttl);
    EXPECT_TRUE(eventually([&] { return waiters(name) > before && listeners() > heard; }));
    return child;
  }
  /// How many processes can be woken.
  [[nodiscard]] std::size_t listeners() {
    const auto channels = console_("PUBSUB CHANNELS *");
    if (channels.empty()) return 0;
    return 1 + static_cast<std::size_t>(std::count(channels.begin(), channels.end(), '\n'));
  }

 private:
  servers::RedisServer server_;
  Console console_{server_.port()};
  std::unique_ptr<Client> onlooker_;
};

}  // namespace interlock::redis_tests
