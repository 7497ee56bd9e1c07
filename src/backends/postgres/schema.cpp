#include "backends/postgres/schema.hpp"

#include <charconv>
#include <map>

#include "backends/postgres/sql_texts.hpp"

namespace interlock::postgres {

namespace {

static_assert(kSchemaVersion == INTERLOCK_FORMAT, "CMakeLists.txt names another format");

using Words = std::map<std::string, std::string, std::less<>>;

// {word} becomes what the word stands for.
std::string fill_in(std::string_view text, const Words& words) {
  std::string filled;
  while (true) {
    const auto open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) return filled;
    const auto close = text.find('}', open);
    const auto word = words.find(text.substr(open + 1, close - open - 1));
    if (word == words.end()) {
      filled += '{';
      text.remove_prefix(open + 1);
    } else {
      filled += word->second;
      text.remove_prefix(close + 1);
    }
  }
}

Words common() {
  return {
      {"version", std::to_string(kSchemaVersion)},
      {"schema_lock", "4787269183346250060"},  // id_of("interlock", " schema"), once and for all
      {"grace_ms", "500"},     // for the client of an ended hold to free it by itself
      {"ticket_ms", "15000"},  // a place in the queue lasts this long without a heartbeat
      {"woken_ms", "6000"},    // told that it is its turn: longer than a call may take (timeout=5s)
      {"foreign_ms", "100"},   // how often one looks at a lock of another program
      {"deaf_look_ms", "100"},  // how often the first in line looks if it can't be told
      {"second_look_ms", "500"},
      {"most_places", "1000"},  // that are counted
      {"acquire_parameters",
       "by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[],"
       " ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint,"
       " of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean"},
      {"trust", std::string(sql::trust)},
      {"own_path", std::string("SET ") + kOwnPath},
      // interlock.guard, in place
      {"guard_one",
       "IF current_setting('transaction_isolation') <> 'read committed' THEN"
       " PERFORM interlock.guard(ids); END IF;"
       " PERFORM pg_advisory_xact_lock((of_id >> 32)::int, ((of_id << 32) >> 32)::int);"},
  };
}

Words of_leases() {
  auto words = common();
  words.merge(Words{
      {"kind", "lease"},
      {"table", "leases"},
      {"other_table", "locks"},
      {"first_look_ms", "1000"},
      {"session_parameters", "own bigint,"},
      {"session_arguments", "own,"},
      // A grant counts when it is on disk.
      {"enter",
       "IF current_setting('synchronous_commit') = 'off' THEN"
       " PERFORM set_config('synchronous_commit', 'on', true); END IF;"},
      {"own_session", ""},
      {"instead_in_session", ""},
      {"renew_in_session", ""},
      {"blocks", "NULL"},
      {"take_one", "true"},
      {"drop_one", ""},
      {"ours", ""},
      {"rehome", "home = own,"},
      // A crash that loses these costs a wait and breaks nothing. A new place in the queue has drawn a
      // number: the next grant may get one that is only known by the same record on disk.
      {"queued",
       "IF was_queued THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;"},
      {"released", "PERFORM set_config('synchronous_commit', 'off', true);"},
  });
  return words;
}

Words of_locks() {
  auto words = common();
  words.merge(Words{
      {"kind", "lock"},
      {"table", "locks"},
      {"other_table", "leases"},
      {"first_look_ms", "200"},  // a session that ended tells nobody
      {"session_parameters", "backend int, own bigint,"},
      {"session_arguments", "backend, own,"},
      // This session is the one that the caller takes it for: no pooler has put another in its place.
      {"enter",
       "IF backend <> pg_backend_pid() THEN"
       " RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;"},
      // What was granted on a session that was lost is granted no more.
      {"own_session",
       "IF interlock.lock_elsewhere(by_owner, ids, own) THEN"
       " RAISE EXCEPTION USING ERRCODE = 'IL005', MESSAGE = 'its last session has not ended yet';"
       " END IF;"
       " DELETE FROM interlock.locks WHERE owner = by_owner AND line = 0 AND id = ANY (ids)"
       " AND home <> own;"},
      {"instead_in_session",
       "IF instead <> none AND interlock.lock_elsewhere(instead, ids, own) THEN"
       " RAISE EXCEPTION USING ERRCODE = 'IL004', MESSAGE = 'another session'; END IF;"},
      // Another client could not know when that session ends.
      {"renew_in_session",
       "IF interlock.lock_elsewhere(by_owner, ids, own) THEN"
       " RAISE EXCEPTION USING ERRCODE = 'IL004', MESSAGE = 'another session'; END IF;"},
      {"block_ms", std::to_string(kLongestBlock.count())},
      // Sessions that wait by themselves have odd homes.
      {"blocks", "CASE WHEN own & 1 = 1 THEN at END"},
      {"take_one", "pg_try_advisory_lock(of_id)"},
      {"drop_one", "PERFORM pg_advisory_unlock(of_id);"},
      {"ours", "AND home = own AND taken = 'e'"},
      {"rehome", ""},
      {"queued", ""},
      {"released", ""},
  });
  return words;
}

std::string parameters(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i == 1 ? "$" : ",$") + std::to_string(i);
  return text;
}

Statement call(const std::string& function, int count, const char* select = "SELECT ") {
  return {.name = "interlock_" + function,
          .text = select + ("interlock." + function) + "(" + parameters(count) + ")"};
}

Verbs make_verbs(const std::string& kind, int session) {
  Verbs verbs{.acquire = call(kind + "_acquire", session + 16),
              .renew = call(kind + "_renew", session + 8),
              .release = call(kind + "_release", session + 2),
              .inspect = call(kind + "_inspect", session + 2, "SELECT * FROM "),
              .acquire_one = call(kind + "_acquire_one", session + 16),
              .release_one = call(kind + "_release_one", session + 2)};
  verbs.acquire.makes_schema = true;
  verbs.acquire_one.makes_schema = true;
  // It may be asked about all locks of the database.
  verbs.inspect.most_bytes = 64 * Statement::kMebibyte;
  return verbs;
}

// Of a schema that has no comment of ours: it is empty, or was restored without comments.
constexpr int kNoVersion = -1;

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string other_version(int found) {
  const auto known = ", and this program works with version " + std::to_string(kSchemaVersion) +
                     " alone. Nothing was changed. ";
  if (found > kSchemaVersion)
    return "the schema interlock is of version " + std::to_string(found) + known +
           "Use a newer program: update Interlock";
  return (found == kNoVersion ? std::string("the schema interlock does not say its version")
                              : "the schema interlock is of version " + std::to_string(found)) +
         known +
         "Stop all programs that use this database with an older Interlock, then change the schema "
         "over: interlock schema --url postgres:// | psql -v ON_ERROR_STOP=1 -d DATABASE";
}

// To be run in one transaction, after kOwnPath is set.
std::string schema_sql() {
  return fill_in(sql::schema, common()) + fill_in(sql::lease_hooks, of_leases()) +
         fill_in(sql::rules, of_leases()) + fill_in(sql::lock_hooks, of_locks()) +
         fill_in(sql::rules, of_locks()) + fill_in(sql::own_paths, common()) +
         "\nCOMMENT ON SCHEMA interlock IS 'Interlock " + std::to_string(kSchemaVersion) + "';\n";
}

}  // namespace

std::string schema_script() {
  return std::string("BEGIN;\nSET LOCAL ") + kOwnPath + ";\n" + schema_sql() + "COMMIT;\n";
}

// Of several that come at once, one makes it, and the others find it made. If that one is of another version, it is
// asked for again: the next greeting refuses it.
std::string make_schema_sql() {
  return fill_in(R"sql(DO $once$
BEGIN
  PERFORM pg_advisory_xact_lock({schema_lock});
  -- Somebody else may have made it while we waited.
  EXECUTE $trust${trust}$trust$;
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'interlock') THEN
    IF obj_description(to_regnamespace('interlock'), 'pg_namespace') IS DISTINCT FROM 'Interlock {version}' THEN
      RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'the schema interlock was just made by another program';
    END IF;
    RETURN;
  END IF;
  EXECUTE $schema$)sql",
                 common()) +
         schema_sql() + "$schema$;\nEND $once$";
}

std::string hello_sql() {
  return "SELECT pg_backend_pid(), CASE WHEN n.oid IS NULL THEN " + std::to_string(kNoSchema) +
         " ELSE coalesce(substring(obj_description(n.oid, 'pg_namespace') from "
         "'^Interlock ([0-9]+)$')::int, " +
         std::to_string(kNoVersion) +
         ") END, "
         "current_setting('transaction_read_only') = 'on', "
         "current_setting('server_version_num')::int, "
         // Whether we could make the schema.
         "has_database_privilege(current_database(), 'CREATE'), current_user, current_database() "
         "FROM (SELECT) AS one LEFT JOIN pg_namespace n ON n.nspname = 'interlock'; "
         // After that: a schema that was not there when it was looked at may be somebody else's by now.
         + std::string(sql::trust);
}

Hello read_hello(const PGresult& answer) {
  if (PQntuples(&answer) != 1 || PQnfields(&answer) != 7)
    throw Error(Errc::unreachable, "the server's answer makes no sense");
  const Hello hello{.process = number(text_at(answer, 0, 0)),
                    .schema = number(text_at(answer, 0, 1)),
                    .read_only = text_at(answer, 0, 2) == "t",
                    .server = number(text_at(answer, 0, 3))};
  if (hello.server < 140000) {
    throw Error(Errc::refused, "the server is PostgreSQL " + std::to_string(hello.server / 10000) +
                                   ", and Interlock needs 14 or later");
  }
  if (hello.read_only) {
    throw Error(Errc::refused,
                "the server is read-only (a standby?): name the primary, or all hosts");
  }
  if (hello.schema != kNoSchema && hello.schema != kSchemaVersion)
    throw Error(Errc::refused, other_version(hello.schema));
  return hello;
}

// Asked before it is tried: the server would log all of it.
std::optional<Error> why_unmakeable(const PGresult& hello, const std::string& node) {
  if (text_at(hello, 0, 4) == "t") return {};
  return Error(
      Errc::refused,
      "the role " + std::string(text_at(hello, 0, 5)) +
          " lacks the right to make the schema "
          "interlock (of version " +
          std::to_string(kSchemaVersion) + ") in the database " +
          std::string(text_at(hello, 0, 6)) +
          ", so nothing can be locked there; `interlock schema --url postgres://` prints the SQL "
          "that makes it by hand, and docs/postgres.md lists the rights that it takes",
      {.resource = {}, .node = node, .maybe_held = false});
}

const SessionVerbs& SessionVerbs::get() {
  static const auto* const verbs = new SessionVerbs{.expire = call("lock_expire", 4),
                                                    .settle = call("lock_settle", 2),
                                                    .title = call("lock_title", 3),
                                                    .wait = call("lock_wait", 18),
                                                    .end = call("lock_terminate", 3)};
  return *verbs;
}

const Verbs& Verbs::of(Settings::Kind kind) {
  static const auto* const leases = new Verbs(make_verbs("lease", 1));
  static const auto* const locks = new Verbs(make_verbs("lock", 2));
  return kind == Settings::Kind::lease ? *leases : *locks;
}

}  // namespace interlock::postgres
