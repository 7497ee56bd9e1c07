#include "conformance/suite.hpp"
#include "servers/redis_server.hpp"

namespace interlock::conformance {
namespace {

class RedisFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override { return stores::open(server_.url()); }
  void restart() override { server_.restart(); }

 private:
  servers::RedisServer server_;
};

[[maybe_unused]] const bool kRegistered = add_store<RedisFixture>("redis");

}  // namespace
}  // namespace interlock::conformance
