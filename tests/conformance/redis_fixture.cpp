#include "conformance/served.hpp"
#include "servers/redis_server.hpp"

namespace interlock::conformance {
namespace {

class OneServer final : public ServedFixture {
 public:
  OneServer() : ServedFixture(shared<servers::RedisServer>().url()) {}
  void restart() override { shared<servers::RedisServer>().restart(); }
};

class UnixSocket final : public ServedFixture {
 public:
  UnixSocket() : ServedFixture("redis+unix://" + shared<servers::RedisServer>().socket()) {}
};

class WithTls final : public ServedFixture {
 public:
  WithTls() : ServedFixture(shared<servers::TlsRedisServer>().url()) {}
};

class WithSentinel final : public ServedFixture {
 public:
  WithSentinel() : ServedFixture(shared<servers::SentinelGroup>().url()) {}
};

class InCluster final : public ServedFixture {
 public:
  InCluster() : ServedFixture(shared<servers::RedisCluster>().url()) {}
};

[[maybe_unused]] const bool kOne = add_store<OneServer>("redis");
[[maybe_unused]] const bool kUnix = add_store<UnixSocket>("redis_unix");
[[maybe_unused]] const bool kTls = add_store<WithTls>("redis_tls");
[[maybe_unused]] const bool kSentinel = add_store<WithSentinel>("redis_sentinel");
[[maybe_unused]] const bool kCluster = add_store<InCluster>("redis_cluster");

}  // namespace
}  // namespace interlock::conformance
