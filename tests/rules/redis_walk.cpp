// The scripts and the lock table have the same rules.
#include "redis/redis_test.hpp"
#include "rules/walk.hpp"
#include "servers/still_clock.hpp"

namespace interlock::redis_tests {
namespace {

TEST(Redis, AnswersLikeTheLockTable) {
  servers::StillClock clock;
  servers::RedisServer server({}, "redis-server", clock.words());
  Console console(server.port());
  rules_walk::walk(
      [&] {
        console("FLUSHALL");
        return stores::open(server.url());
      },
      {.place_lasts = 3s,
       .told_lasts = 1s,
       .told_readers_last = true,
       .spares_those_who_wait_elsewhere = true,
       .second_looks = 500ms,
       .looks_past_waiters = true,
       .looks_at_any_holder = true},
      [&](Duration time) { clock.advance(time); });
}

TEST(Redlock, AnswersLikeTheLockTable) {
  const std::array<servers::RedisServer, 3> nodes;
  int opened = 0;
  const auto open = [&] {
    return stores::open("redlock://" + nodes[0].address() + "," + nodes[1].address() + "," +
                        nodes[2].address() + "?prefix=walk" + std::to_string(++opened) + ":");
  };
  // It forgets a waiter that has not asked for 3 s.
  rules_walk::walk(open, {.one_shot_leaves = true,
                          .plain = true,
                          .taken_over_is_gone = true,
                          .silence = 2500ms,
                          .wakes_more = true,
                          .looks_in_its_own_way = true});
}

}  // namespace
}  // namespace interlock::redis_tests
