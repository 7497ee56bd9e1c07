// A schema of this and of other versions, as a backup holds it.
#include "formats.hpp"
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

using testing_support::expect_format_refused;
using testing_support::format_file;
using testing_support::replace_all;

class Formats : public PostgresTest {
 protected:
  void restore(const std::string& text) {
    sql("DROP SCHEMA IF EXISTS interlock CASCADE");
    const auto said = servers::PostgresConsole(url())(text);
    ASSERT_TRUE(said.empty() || said.front() != '(') << said;
  }
  std::string rows() {
    return sql("SELECT * FROM interlock.leases UNION ALL SELECT * FROM interlock.locks ORDER BY 1");
  }
};

TEST_F(Formats, ThePresentOneIsRead) {
  restore(format_file("postgres-8.sql"));
  // The holder's session: its number, and the lock.
  servers::PostgresConsole holder(url());
  holder(
      "SELECT pg_advisory_lock(interlock.high(home), interlock.low(home)), pg_advisory_lock(id) "
      "FROM interlock.locks");
  for (const auto& [where, name, owner] :
       {std::tuple(lease_url(), "exclusive", "36efeac7b59929518be32d9c922829d6"),
        std::tuple(lease_url(), "shared", "3ebd7b7e79cd9c3df14e24a1b7cbb007"),
        std::tuple(url(), "advisory", "a120b77d2f2fdc5f67f39634c3927119")}) {
    SCOPED_TRACE(name);
    const auto state = look(name, where);
    ASSERT_EQ(state.holders.size(), 1U);
    EXPECT_EQ(state.holders[0].owner.to_string(), owner);
    EXPECT_EQ(state.holders[0].who.host, "vm");
    EXPECT_FALSE(Mutex(connect(where), name).try_acquire());
  }
  EXPECT_EQ(look("exclusive", lease_url()).holders[0].who.label, "nightly-backup");
}

TEST_F(Formats, OthersAreRefusedAndLeftAsTheyAre) {
  const auto now = format_file("postgres-8.sql");
  for (const auto& [version, remedy] :
       {std::pair("7", "interlock schema"), std::pair("9", "update Interlock")}) {
    SCOPED_TRACE(version);
    restore(replace_all(now, "'Interlock 8'", std::string("'Interlock ") + version + "'"));
    const auto before = rows();
    for (const auto& where : {url(), lease_url()}) {
      expect_format_refused(
          where, "exclusive",
          {std::string("version ") + version, "version 8", "Nothing was changed", remedy});
    }
    EXPECT_EQ(rows(), before);
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
