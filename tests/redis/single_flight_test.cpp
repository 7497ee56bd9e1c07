#include "process/stampede.hpp"
#include "servers/redis_server.hpp"

namespace interlock::redis_tests {
namespace {

TEST(SingleFlights, ThreeHundredCallersInThreeProcessesAreOneRun) {
  const servers::RedisServer server;
  const TemporaryDirectory directory;
  process::expect_one_run(server.url(), directory.path());
}

}  // namespace
}  // namespace interlock::redis_tests
