// What the server says, and what it means.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "interlock/error.hpp"

namespace interlock::postgres {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

/// What came of a request: rows (or a server's error), or nothing.
struct Outcome {
  Result result{};
  std::optional<Error> failure{};  ///< why there is none
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

/// A server's error in our words: what it means and what to do. `node`: who said so; `names`: the
/// locks concerned.
Error to_error(const PGresult& result, const std::string& node, const std::string& names = {});

/// The same for a connection that could not be had.
Error connect_error(PGconn* connection, const std::string& node);

}  // namespace interlock::postgres
