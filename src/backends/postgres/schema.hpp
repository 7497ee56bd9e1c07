// The schema in the database: tables, and a function for each verb.
#pragma once

#include <string>

#include "backends/postgres/link.hpp"
#include "backends/postgres/settings.hpp"

namespace interlock::postgres {

/// Where the server looks up the names in our SQL: in pg_catalog, where nobody else can put functions, operators or
/// types. On the usual path, an overload that somebody else put into `public` may match better, and runs with our
/// rights. Each message of a greeting sets this path, and so does each function of the schema, as a pooler's session has
/// whatever settings it has. (Start-up options would not do: poolers refuse them.)
inline constexpr auto kOwnPath = "search_path = pg_catalog, pg_temp";

/// What makes it, or changes an older one over: for an administrator to run by hand; safe to repeat.
std::string schema_script();
/// Makes the schema for a client that found none. Changes none that is there.
std::string make_schema_sql();

/// What to ask first on every connection. Fails (IL006) if others could put code into the schema. One row: the
/// server's process, the version of the schema, whether it is read-only, the version of the server, and who may make it.
std::string hello_sql();

struct Hello {
  int process = 0;
  int schema = 0;  ///< its version, or kNoSchema
  bool read_only = false;
  int server = 0;
};
/// Throws Error (refused) if the server is not one to work with, or its schema is of another version.
Hello read_hello(const PGresult& answer);
/// Why the role that asked can't make a schema (refused); nothing: it can. `node` is for the error.
std::optional<Error> why_unmakeable(const PGresult& hello, const std::string& node);
inline constexpr int kSchemaVersion = 8;
inline constexpr int kNoSchema = 0;

/// For so long at most a statement of ours blocks in the server on purpose.
inline constexpr auto kLongestBlock = std::chrono::milliseconds(900);

/// A place in the queue lasts three times as long. Those at its head look more often.
inline constexpr Duration kHeartbeat = std::chrono::seconds(5);

/// The verbs of one kind of locks.
struct Verbs {
  Statement acquire;
  Statement renew;
  Statement release;
  Statement inspect;
  /// For the usual claim: one exclusive lock, without an identity.
  Statement acquire_one;
  Statement release_one;

  static const Verbs& of(Settings::Kind kind);
};

/// What a session does besides. All its verbs begin with the session: its process, and its home.
struct SessionVerbs {
  Statement expire;
  Statement settle;
  Statement title;
  Statement wait;  ///< parameters as for acquire_one
  Statement end;   ///< another session, by its home

  static const SessionVerbs& get();
};

}  // namespace interlock::postgres
