// The SQL functions and the lock table have the same rules.
#include "rules/known.hpp"
#include "rules/walk.hpp"

#include "postgres/postgres_test.hpp"
#include "servers/still_clock.hpp"

namespace interlock::postgres_tests {
namespace {

using rules_walk::Liberties;

Liberties liberties(Duration first_looks) {
  return {.place_lasts = 15s,
          .told_lasts = 6s,
          .tells_the_asker = rules_walk::is_known(2),
          .first_looks = first_looks,
          .second_looks = 500ms};
}

TEST(PostgresLease, AnswersLikeTheLockTable) {
  servers::StillClock clock;
  const servers::PostgresServer server({}, clock.words());
  int round = 0;
  rules_walk::walk(
      [&] { return stores::open(server.url() + "?mode=lease&prefix=" + std::to_string(++round)); },
      liberties(1s), [&](Duration time) { clock.advance(time); });
}

// A hold ends by the clock of its client, which nobody moves.
TEST(PostgresAdvisory, AnswersLikeTheLockTable) {
  const servers::PostgresServer server;
  int round = 0;
  rules_walk::walk(
      [&] { return stores::open(server.url() + "?wait=listen&prefix=" + std::to_string(++round)); },
      liberties(200ms));
}

}  // namespace
}  // namespace interlock::postgres_tests
