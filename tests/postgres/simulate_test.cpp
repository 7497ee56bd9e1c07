// Workers in several processes, some of which are killed: nothing overlaps.
#include "simulating.hpp"

#include "servers/postgres_server.hpp"

namespace interlock::postgres_tests {
namespace {

TEST(Simulate, NothingOverlapsWithSessions) {
  const servers::PostgresServer server;
  testing_support::simulate_all(server.url());
}

TEST(Simulate, NothingOverlapsWhereWaitersBlock) {
  const servers::PostgresServer server;
  testing_support::simulate_all(server.url() + "?wait=block");
}

TEST(Simulate, NothingOverlapsWithLeases) {
  const servers::PostgresServer server;
  testing_support::simulate_all(server.url() + "?mode=lease");
}

}  // namespace
}  // namespace interlock::postgres_tests
