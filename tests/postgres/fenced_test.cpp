// The fence counts where the data is: a holder that was stopped past its TTL wakes up and writes.
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Fenced : public PostgresTest, public testing::WithParamInterface<const char*> {};

TEST_P(Fenced, AStoppedHolderThatWakesUpIsRefusedByTheCondition) {
  sql("CREATE TABLE reports (name text PRIMARY KEY, body text NOT NULL,"
      " fence bigint NOT NULL DEFAULT 0, fence_owner text NOT NULL DEFAULT '')");
  sql("INSERT INTO reports VALUES ('weekly', '')");
  const auto fence = sql_fence();
  const auto write = "PREPARE put (bigint, text, text) AS UPDATE reports SET body = $3, " +
                     fence.assign + " WHERE name = '\\''weekly'\\'' AND " + fence.admits;
  const auto as_the_holder = [&](const std::string& body) {
    return "do psql " + server().url() + " -X -c '" + std::string(write) +
           "' -c \"EXECUTE put ($FENCE, '$OWNER', '" + body + "')\"";
  };
  const auto literal = [](const Lease& lease) {
    return sql_fence(std::to_string(lease.fence().value), "'" + lease.owner().brief() + "'");
  };
  const auto where = " WHERE name = 'weekly' AND ";

  Child stopped("holder", {url(GetParam()), "report", "1s"});
  EXPECT_GT(stopped.fence(), 0U);
  EXPECT_EQ(stopped.ask(as_the_holder("draft"), "did "), "PREPARE UPDATE 1 ");
  EXPECT_EQ(stopped.ask(as_the_holder("draft 2"), "did "), "PREPARE UPDATE 1 ")
      << "the same one again";
  stopped.signal(SIGSTOP);
  const auto lease = Mutex(connect(url(GetParam())), "report").acquire();
  const auto mine = literal(lease);
  EXPECT_EQ(sql("UPDATE reports SET " + mine.assign + where + mine.admits + " RETURNING body"),
            "draft 2")
      << "a read shuts the older ones out";
  stopped.tell(as_the_holder("late"));
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.after("did "), "PREPARE UPDATE 0 ");
  EXPECT_EQ(sql("UPDATE reports SET body = 'final', " + mine.assign + where + mine.admits +
                " RETURNING body"),
            "final");
}

INSTANTIATE_TEST_SUITE_P(, Fenced, testing::Values("mode=advisory", "mode=lease"),
                         [](const auto& mode) { return std::string(mode.param).substr(5); });

}  // namespace
}  // namespace interlock::postgres_tests
