// Workers in several processes, some of which are killed: nothing overlaps.
#include "simulating.hpp"

#include "servers/redis_server.hpp"

namespace interlock::redis_tests {
namespace {

TEST(Simulate, NothingOverlaps) {
  const servers::RedisServer server;
  testing_support::simulate_all(server.url());
}

}  // namespace
}  // namespace interlock::redis_tests
