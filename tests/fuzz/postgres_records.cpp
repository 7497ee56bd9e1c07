// What a PostgreSQL server answers: rows of locks, the words of a verb, and errors. Anybody who may write to the schema may
// have written them. One cell a line, one row after the other.
#include "backends/postgres/claims.hpp"
#include "backends/postgres/schema.hpp"
#include "fuzz.hpp"

namespace {

namespace postgres = interlock::postgres;
using interlock::Duration;

constexpr std::string_view kSecret = "hunter2-secret";
const std::string kNode = "postgres://node";

postgres::Result table_of(std::string_view cells, int columns) {
  postgres::Result result(PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK));
  std::vector<PGresAttDesc> names(static_cast<std::size_t>(columns));
  for (auto& name : names) name.name = const_cast<char*>("");
  PQsetResultAttrs(result.get(), columns, names.data());
  for (int cell = 0; !cells.empty(); ++cell) {
    std::string text(fuzz::next_line(cells));
    PQsetvalue(result.get(), cell / columns, cell % columns, text.data(),
               static_cast<int>(text.size()));
  }
  return result;
}

void rows(std::string_view cells) {
  constexpr int kColumns = 15;
  const postgres::Outcome outcome{.result = table_of(cells, kColumns)};
  const auto snapshot = postgres::to_snapshot(outcome, "interlock:", kNode);
  for (const auto& state : snapshot.resources) {
    for (const auto* entries : {&state.holders, &state.waiters}) {
      for (const auto& entry : *entries) {
        fuzz::require(entry.age >= Duration::zero() && entry.remaining >= Duration::zero(),
                      "times are not negative");
      }
    }
  }
}

void words(std::string_view cells) {
  static const interlock::Claim claim{
      .owner = {.high = 1, .low = 2},
      .parts = {{.resource = "a", .mode = interlock::Mode::slots, .slots = 1, .capacity = 2},
                {.resource = "b"}},
      .ttl = std::chrono::seconds(30),
      .who = std::make_shared<const interlock::Who>()};
  const postgres::Outcome outcome{.result = table_of(cells, 1)};
  const auto answer = postgres::to_answer(outcome, claim, kNode);
  fuzz::require(answer.verdict != interlock::Verdict::unknown || answer.why, "a failure says why");
  (void)postgres::to_waited(outcome, claim, kNode);
}

void errors(std::string_view text) {
  const interlock::core::Secrets secrets{kSecret};
  std::string_view rest = text;
  const std::string state(fuzz::next_line(rest).substr(0, 5));
  const auto said = postgres::first_line(rest, secrets);
  for (const auto& error : {postgres::to_error({.state = state, .said = said}, kNode, "'a'"),
                            postgres::connect_error(text, kNode, secrets)}) {
    fuzz::require(!error.message().empty(), "an error has words");
    fuzz::require(error.message().find(kSecret) == std::string::npos, "no error shows a password");
  }
}

}  // namespace

void fuzz::run(std::string_view input) {
  rows(input);
  words(input);
  const auto hello = table_of(input, 7);
  (void)accepted([&] { return postgres::read_hello(*hello); });
  (void)postgres::owner_of(input);
  if (input.find('\0') == input.npos) errors(input);
}
