// A PostgreSQL server of its own for every test, a console to give it orders, and clients in this
// process and in others.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "process/child.hpp"
#include "servers/postgres_server.hpp"
#include "servers/proxy.hpp"
#include "waiting.hpp"

namespace interlock::postgres_tests {

using namespace std::chrono_literals;
using process::Child;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::still_held;
using testing_support::Waiting;

/// "About a second" on a machine that has other things to do as well. The TTL in such tests is ten
/// minutes.
inline constexpr Duration kAboutASecond = 5s;

/// Comes back soon after the server does.
inline const Options kPatient{.ttl = 600s, .retry = {.attempts = 200, .first = 20ms, .max = 200ms}};

/// Takes and gives back, with others, until it is enough.
class Crowd {
 public:
  Crowd(const std::string& where, int many) {
    for (int i = 0; i < many; ++i) {
      threads_.emplace_back([where](const std::stop_token& stop) {
        const Mutex mutex(connect(where), "hot", kPatient);
        while (!stop.stop_requested()) static_cast<void>(mutex.acquire());
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

class PostgresTest : public testing::Test {
 protected:
  explicit PostgresTest(std::vector<std::string> options = {}, std::vector<std::string> under = {})
      : server_(std::move(options), std::move(under)) {}

  [[nodiscard]] servers::PostgresServer& server() { return server_; }
  std::string sql(const std::string& text) { return server_.console()(text); }

  [[nodiscard]] std::string url(const std::string& options = "") const {
    return server_.url() + (options.empty() ? "" : "?" + options);
  }
  [[nodiscard]] std::string lease_url(const std::string& options = "") const {
    return url("mode=lease" + (options.empty() ? "" : "&" + options));
  }
  [[nodiscard]] static std::string url(const servers::Proxy& proxy,
                                       const std::string& options = "") {
    return "postgres://postgres@127.0.0.1:" + std::to_string(proxy.port()) + "/postgres" +
           (options.empty() ? "" : "?" + options);
  }
  [[nodiscard]] ResourceState look(const std::string& name, const std::string& where) {
    const auto client = connect(where);
    auto found = client.inspect({.resources = {name}}).resources;
    return found.empty() ? ResourceState{.resource = name} : std::move(found.front());
  }
  [[nodiscard]] std::size_t holders(const std::string& name, const std::string& where) {
    return look(name, where).holders.size();
  }
  [[nodiscard]] std::size_t waiters(const std::string& name, const std::string& where) {
    return look(name, where).waiters.size();
  }
  /// Starts to wait, and comes back when it stands in the queue.
  [[nodiscard]] Waiting queue_up(const Mutex& mutex, const std::string& where) {
    const auto before = waiters(mutex.resource(), where);
    Waiting waiting(mutex);
    EXPECT_TRUE(eventually([&] { return waiters(mutex.resource(), where) > before; }));
    return waiting;
  }
  /// A process that waits for the lock and holds it until it is told otherwise.
  [[nodiscard]] static Child holder(const std::string& where, const std::string& name,
                                    const std::string& ttl = "600s") {
    return Child("holder", {where, name, ttl, "exclusive"});
  }
  /// The server's process behind the session that holds this lock.
  [[nodiscard]] std::string session_of(const std::string& name) {
    std::string session;
    EXPECT_TRUE(eventually([&] {
      session =
          sql("SELECT interlock.lock_backend(home) FROM interlock.locks WHERE line = 0 AND "
              "resource = 'interlock:" +
              name + "'");
      return !session.empty();
    }));
    return session;
  }
  [[nodiscard]] int sessions() {
    return std::stoi(
        sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'interlock%'"));
  }

 private:
  servers::PostgresServer server_;
};

}  // namespace interlock::postgres_tests
