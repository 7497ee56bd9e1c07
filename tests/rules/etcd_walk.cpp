// What is decided by letters and compares, and what by the lock table, is the same.
#include "etcd/etcd_test.hpp"
#include "rules/known.hpp"
#include "rules/walk.hpp"

namespace interlock::etcd_tests {
namespace {

class Etcd : public EtcdTest<servers::EtcdServer> {};

// Its time is that of its clients, which nobody moves: what ends meanwhile is not compared.
TEST_F(Etcd, AnswersLikeTheLockTable) {
  Mutex(connect(url()), "serves", patient()).acquire().release();
  int round = 0;
  rules_walk::walk(
      [&] { return stores::open(url() + "?prefix=" + std::to_string(++round) + "/&timeout=60s"); },
      {.remembers_places = true,
       .one_shot_leaves = true,
       .silence = 4s,
       .wakes_more = true,
       .identities_look = rules_walk::is_known(1),
       .looks_in_its_own_way = true});
}

}  // namespace
}  // namespace interlock::etcd_tests
