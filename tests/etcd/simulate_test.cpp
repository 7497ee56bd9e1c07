// Workers in several processes, some of which are killed: nothing overlaps.
#include "simulating.hpp"

#include "servers/etcd_server.hpp"

namespace interlock::etcd_tests {
namespace {

TEST(Simulate, NothingOverlaps) {
  const servers::EtcdServer server;
  testing_support::simulate_all(server.url());
}

}  // namespace
}  // namespace interlock::etcd_tests
