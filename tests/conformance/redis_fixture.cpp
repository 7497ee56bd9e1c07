#include "conformance/suite.hpp"
#include "servers/redis_server.hpp"

namespace interlock::conformance {
namespace {

// Servers are started once for all tests of a process, and every test has a prefix of its own.
template <class Servers>
Servers& shared() {
  static Servers servers;
  return servers;
}

class RedisFixture : public StoreFixture {
 public:
  explicit RedisFixture(std::string url) : url_(std::move(url)) {
    url_ += (url_.find('?') == std::string::npos ? "?" : "&") + std::string("prefix=t") +
            Owner::random().brief() + ":";
  }
  std::unique_ptr<Backend> open() override { return stores::open(url_); }

 private:
  std::string url_;
};

class OneServer final : public RedisFixture {
 public:
  OneServer() : RedisFixture(shared<servers::RedisServer>().url()) {}
  void restart() override { shared<servers::RedisServer>().restart(); }
};

class UnixSocket final : public RedisFixture {
 public:
  UnixSocket() : RedisFixture("redis+unix://" + shared<servers::RedisServer>().socket()) {}
};

class WithTls final : public RedisFixture {
 public:
  WithTls() : RedisFixture(shared<servers::TlsRedisServer>().url()) {}
};

class WithSentinel final : public RedisFixture {
 public:
  WithSentinel() : RedisFixture(shared<servers::SentinelGroup>().url()) {}
};

class InCluster final : public RedisFixture {
 public:
  InCluster() : RedisFixture(shared<servers::RedisCluster>().url()) {}
};

[[maybe_unused]] const bool kOne = add_store<OneServer>("redis");
[[maybe_unused]] const bool kUnix = add_store<UnixSocket>("redis_unix");
[[maybe_unused]] const bool kTls = add_store<WithTls>("redis_tls");
[[maybe_unused]] const bool kSentinel = add_store<WithSentinel>("redis_sentinel");
[[maybe_unused]] const bool kCluster = add_store<InCluster>("redis_cluster");

}  // namespace
}  // namespace interlock::conformance
