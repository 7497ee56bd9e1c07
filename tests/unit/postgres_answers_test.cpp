// Answers of a PostgreSQL server that make no sense, and rows that others have written.
#include <gtest/gtest.h>

#include "backends/postgres/claims.hpp"

using namespace interlock;
using namespace interlock::postgres;

namespace {

const std::string kFar = "9223372036854775807";

// One row.
Result row_of(std::vector<std::string> cells) {
  Result result(PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK));
  std::vector<PGresAttDesc> columns(cells.size());
  for (auto& column : columns) column.name = const_cast<char*>("");
  PQsetResultAttrs(result.get(), static_cast<int>(columns.size()), columns.data());
  for (std::size_t i = 0; i < cells.size(); ++i)
    PQsetvalue(result.get(), 0, static_cast<int>(i), cells[i].data(),
               static_cast<int>(cells[i].size()));
  return result;
}

const Claim kClaim{.owner = {.high = 1, .low = 2},
                   .parts = {{.resource = "name"}},
                   .ttl = std::chrono::seconds(30)};

TEST(PostgresAnswers, TimesThatNobodyHasAreLongAndNotNegative) {
  const Outcome rows{.result = row_of({"p:name", "0", "837220a737511dd5e8698ffb04313409", "e", "1",
                                       "0", "f", "0", "7", kFar, kFar, "", "", "host", "1"})};
  const auto snapshot = to_snapshot(rows, "p:", "");
  ASSERT_EQ(snapshot.resources.size(), 1U);
  EXPECT_GT(snapshot.resources[0].holders.at(0).age, Duration::zero());
  EXPECT_GT(snapshot.resources[0].holders.at(0).remaining, Duration::zero());

  const Outcome queued{.result = row_of({"queued 1 " + kFar})};
  EXPECT_GT(to_answer(queued, kClaim, "").look_again, Duration::zero());
  const Outcome waited{.result = row_of({kFar + " granted 7"})};
  EXPECT_GT(to_waited(waited, kClaim, "").time, Duration::zero());
}

TEST(PostgresAnswers, AnErrorHasWords) {
  for (const auto* text : {"", "\nDETAIL:  more", "FATAL:  IL006: \n"})
    EXPECT_FALSE(connect_error(std::string_view(text), "", {}).message().empty()) << text;
  EXPECT_FALSE(to_error({.state = "IL006", .said = first_line("", {})}, "").message().empty());
}

}  // namespace
