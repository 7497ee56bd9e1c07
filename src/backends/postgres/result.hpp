// What the server says, and what it means.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/secrets.hpp"
#include "interlock/error.hpp"

namespace interlock::postgres {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

/// A server's error, with nothing secret in it.
struct Refusal {
  std::string state{};  ///< five characters
  std::string said{};   ///< the first line
};

/// What came of a request: one of these.
struct Outcome {
  Result result{};                    ///< rows
  std::optional<Refusal> refusal{};   ///< the server's error
  std::optional<Error> failure{};     ///< why there is no answer
  bool made = true;                   ///< false: there is no schema, so there are no rows
  std::optional<Error> unmakeable{};  ///< why the role can't make it
};

inline std::string_view text_at(const PGresult& result, int row, int column) {
  return {PQgetvalue(&result, row, column),
          static_cast<std::size_t>(PQgetlength(&result, row, column))};
}

inline bool is_error(const PGresult& result) {
  const auto status = PQresultStatus(&result);
  return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
}
/// Its five characters; empty if it is no error.
std::string_view sql_state(const PGresult& result);

/// Of a result that is an error.
Refusal to_refusal(const PGresult& result, const core::Secrets& secrets);
/// For people: one line, not too long, nothing secret.
std::string first_line(std::string_view text, const core::Secrets& secrets);

/// A server's error in our words: what it means and what to do. `node`: who said so; `names`: the
/// locks concerned.
Error to_error(const Refusal& refusal, const std::string& node, const std::string& names = {});

/// The same for a connection that could not be had.
Error connect_error(PGconn* connection, const std::string& node, const core::Secrets& secrets);
/// `text`: what libpq says about it.
Error connect_error(std::string_view text, const std::string& node, const core::Secrets& secrets);

}  // namespace interlock::postgres
