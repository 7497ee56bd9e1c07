// Somebody else may create in a schema that is on the search path, and an administrator connects. Expected: nothing of
// theirs is run, and the administrator's rights are nobody else's afterwards.
#include <regex>
#include <set>
#include <sstream>

#include "backends/postgres/schema.hpp"
#include "postgres/plants.hpp"
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Hostile : public PostgresTest {
 protected:
  // The application's name tells our statements from the test's.
  Hostile() : PostgresTest({"log_statement=all", "log_line_prefix=[%a] "}) {
    sql("SET search_path = pg_catalog, pg_temp");
    sql("CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO mallory; CREATE SCHEMA trap "
        "AUTHORIZATION mallory");
  }

  [[nodiscard]] std::string log() {
    std::ifstream file(server().directory() / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// What the log has got since the last time.
  [[nodiscard]] std::vector<std::string> new_lines() {
    const auto all = log();
    const auto end = all.rfind('\n') + 1;
    std::istringstream text(all.substr(read_, end - read_));
    read_ = end;
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  [[nodiscard]] bool is_sent(const std::string& text) {
    return eventually([&] { return log().find(text, read_) != std::string::npos; });
  }

  /// What both modes do.
  void live(const std::string& where) {
    SCOPED_TRACE(where);
    const auto one = connect(where);
    const auto two = connect(where);
    auto lease = Mutex(one, "r", kPatient).acquire();
    auto waiting = queue_up(Mutex(two, "r", kPatient), where);
    EXPECT_TRUE(lease.extend(600s));
    EXPECT_FALSE(one.inspect().resources.empty());
    EXPECT_EQ(lease.release(), LeaseState::released);
    EXPECT_TRUE(waiting.lease());

    auto read = RwLock(one, "rw", kPatient).read();
    EXPECT_TRUE(read.try_upgrade());
    read.downgrade();
    EXPECT_TRUE(RwLock(two, "rw", kPatient).try_read());
    const auto slots = Semaphore(one, "slots", 3, kPatient, 2).acquire();
    EXPECT_FALSE(Semaphore(two, "slots", 3, kPatient, 2).try_acquire());
    const Options me{.ttl = 600s, .identity = "me", .priority = 1};
    const auto outer = MultiLock(one, {"a/b", "c"}, me).acquire();
    EXPECT_TRUE(Mutex(one, "c", me).try_acquire());

    const auto ends = Mutex(one, "ends", {.ttl = 300ms, .renew = false}).acquire();
    EXPECT_TRUE(Mutex(two, "ends", kPatient).acquire());
    const auto taken = Mutex(one, "taken", kPatient).acquire();
    two.evict("taken", taken.owner());
    EXPECT_TRUE(Mutex(two, "taken", kPatient).acquire());
  }
  void deadlock(const std::string& where) {
    const auto client = connect(where);
    const auto left = Mutex(client, "left", {.ttl = 600s, .actor = "left"}).acquire();
    const auto right = Mutex(client, "right", {.ttl = 600s, .actor = "right"}).acquire();
    auto waiting = queue_up(Mutex(client, "right", {.ttl = 600s, .actor = "left"}), where);
    try {
      static_cast<void>(Mutex(client, "left", {.ttl = 600s, .actor = "right"}).acquire());
      ADD_FAILURE() << "nobody looked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
    }
    waiting.cancel();
  }
  /// What only sessions do: block, end one of their own that was lost, clean up after a failure, open a second one.
  void live_in_sessions() {
    auto held = Mutex(connect(url()), "r", kPatient).acquire();
    const auto client = connect(url("wait=block"));
    auto waiting = queue_up(Mutex(client, "r", kPatient), url());
    held.release();
    auto there = waiting.lease();
    auto here = RwLock(client, "here", kPatient).read();
    sql("SELECT pg_terminate_backend(" + session_of("r") + ")");
    EXPECT_TRUE(eventually([&] { return there.lost().stop_requested(); }));
    EXPECT_TRUE(is_sent(": SELECT interlock.lock_terminate("));
    sql("SELECT pg_terminate_backend(" + session_of("here") + ")");
    EXPECT_TRUE(eventually([&] { return here.lost().stop_requested(); }));
    EXPECT_TRUE(Mutex(client, "r", kPatient).acquire());

    const auto hasty = connect(url("timeout=1s"));
    const auto kept = Mutex(hasty, "kept", kPatient).acquire();
    const auto id = sql("SELECT id FROM interlock.locks WHERE resource = 'interlock:kept'");
    sql("BEGIN; SELECT pg_advisory_xact_lock(interlock.high(" + id + "), interlock.low(" + id +
        "))");
    EXPECT_THROW(static_cast<void>(Mutex(hasty, "kept", {.retry = Retry::none()}).try_acquire()),
                 Error);
    sql("ROLLBACK");
    EXPECT_TRUE(is_sent(": SELECT interlock.lock_settle("));
    const Crowd crowd(url(), 2);
    EXPECT_TRUE(is_sent("; SET statement_timeout = 0; DO "))
        << "a second session where locks are handed over";
  }

  /// As somebody may in psql, with whatever search path there is.
  void call_all_by_hand() {
    const auto calls = sql(
        "SELECT 'SELECT interlock.' || proname || '(' || coalesce(string_agg(CASE WHEN kind IS "
        "NULL THEN NULL WHEN typcategory "
        "= 'N' THEN '1' WHEN typcategory = 'A' THEN '''{1}''' WHEN typcategory = 'B' THEN '''t''' "
        "WHEN typname = 'uuid' THEN '''' || gen_random_uuid() || '''' WHEN typcategory = 'D' THEN "
        "'''now''' WHEN typcategory = 'T' THEN '''1s''' WHEN typcategory = 'C' THEN '(SELECT t "
        "FROM interlock.' || typname || ' t LIMIT 1)' ELSE '''e''' END, ', ' ORDER BY i), '') || "
        "')' FROM pg_proc LEFT JOIN unnest(proargtypes) WITH ORDINALITY AS argument (kind, i) ON "
        "true LEFT JOIN pg_type ON pg_type.oid = kind WHERE pronamespace = "
        "'interlock'::regnamespace AND prokind = 'f' GROUP BY pg_proc.oid, proname");
    std::istringstream lines(calls);
    servers::PostgresConsole victim(server().url());
    int many = 0;
    for (std::string call; std::getline(lines, call); ++many) {
      const auto answer = victim(call);
      EXPECT_NE(answer, "(42883)") << call;
      EXPECT_NE(answer, "(42601)") << call;
    }
    EXPECT_GT(many, 30);
  }

  void live_with_others_in_the_way() {
    sql("DROP SCHEMA interlock CASCADE");
    live(url());
    live_in_sessions();
    live(lease_url());
    const auto held = Mutex(connect(url()), "held", kPatient).acquire();
    const auto kept = Mutex(connect(lease_url()), "kept", kPatient).acquire();
    call_all_by_hand();
    deadlock(lease_url());
    for (const std::string mode : {"transaction", "session"}) {
      const servers::PgBouncer bouncer(server(), mode);
      sql("DROP SCHEMA interlock CASCADE");
      live(bouncer.url() + (mode == "session" ? "?pooler=session" : "?mode=lease"));
    }
    EXPECT_EQ(servers::PostgresConsole(server().url())(postgres::schema_script()), "");
  }

 private:
  std::size_t read_ = 0;
};

// Whatever the settings of a session are, and whichever one a pooler gives us.
TEST_F(Hostile, NothingThatIsSentDependsOnTheSearchPath) {
  live(url());
  live(lease_url());
  live_in_sessions();
  {
    const servers::PgBouncer bouncer(server());
    live(bouncer.url() + "?mode=lease");
  }
  const std::regex simple(R"(\[interlock[^\]]*\] LOG:  statement: (.*))");
  const std::regex prepared(R"(\[interlock[^\]]*\] LOG:  execute [^:]+: (.*))");
  const std::regex call(R"(SELECT (?:\* FROM )?interlock\.(\w+)\([$0-9,]*\))");
  std::set<std::string> called{"tidy"};
  std::smatch found;
  for (const auto& line : new_lines()) {
    if (std::regex_match(line, found, simple)) {
      EXPECT_TRUE(found[1].str().starts_with("SET LOCAL search_path = pg_catalog, pg_temp; "))
          << line;
    } else if (std::regex_match(line, found, prepared)) {
      const auto statement = found[1].str();
      EXPECT_TRUE(std::regex_match(statement, found, call)) << line;
      called.insert(found[1].str());
    }
  }
  std::set<std::string> statements{"tidy"};
  for (const auto& verbs : {postgres::Verbs::of(postgres::Settings::Kind::advisory),
                            postgres::Verbs::of(postgres::Settings::Kind::lease)}) {
    for (const auto& verb : {verbs.acquire, verbs.renew, verbs.release, verbs.inspect,
                             verbs.acquire_one, verbs.release_one})
      statements.insert(verb.name.substr(std::string("interlock_").size()));
  }
  const auto& verbs = postgres::SessionVerbs::get();
  for (const auto& verb : {verbs.expire, verbs.settle, verbs.title, verbs.wait, verbs.end})
    statements.insert(verb.name.substr(std::string("interlock_").size()));
  EXPECT_EQ(called, statements) << "all of it was called";
}

// Also those that only others of ours call: an administrator may call them by hand.
TEST_F(Hostile, NoFunctionOfTheSchemaDependsOnTheSearchPath) {
  live(url());
  for (const auto* before :
       {"SELECT",
        "ALTER FUNCTION interlock.guard RESET ALL; COMMENT ON SCHEMA interlock IS 'Interlock 7'"}) {
    ASSERT_EQ(sql(before), "");
    ASSERT_EQ(servers::PostgresConsole(url())(postgres::schema_script()), "");
    live(lease_url());
    EXPECT_GT(std::stoi(sql("SELECT count(*) FROM pg_proc WHERE pronamespace = "
                            "'interlock'::regnamespace")),
              30);
    // A function that begins with RETURN has no text: its names were looked up when it was made.
    EXPECT_EQ(sql("SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = "
                  "'interlock'::regnamespace AND prosqlbody IS NULL AND "
                  "'search_path=pg_catalog, pg_temp' <> ALL (coalesce(proconfig, '{}'))"),
              "");
  }
}

TEST_F(Hostile, NobodyElsesFunctionsOperatorsAndTypesAreUsed) {
  live(url());
  live(lease_url());
  live_in_sessions();
  sql("CREATE TABLE trap.seen AS SELECT $seen$" + log() +
      "$seen$ AS text; GRANT SELECT ON trap.seen TO mallory");
  {
    servers::PostgresConsole mallory(server().url("mallory"));
    mallory("SET search_path = pg_catalog");
    ASSERT_EQ(mallory(kPlants), "");
  }
  ASSERT_GT(
      std::stoi(sql("SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace")),
      1000);
  ASSERT_GT(std::stoi(sql(
                "SELECT count(*) FROM pg_operator WHERE oprnamespace = 'public'::regnamespace")),
            1000);
  {
    servers::PostgresConsole victim(server().url());
    victim("SELECT obj_description('interlock'::regnamespace, 'pg_namespace')");
    ASSERT_EQ(sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "t") << "they work";
    sql("ALTER ROLE mallory NOSUPERUSER");
    (void)new_lines();
  }
  for (const auto* how : {"RESET search_path",  // the schema public is on it
                          "SET search_path = public, pg_catalog"}) {
    SCOPED_TRACE(how);
    sql(std::string("ALTER DATABASE postgres ") + how);
    try {
      live_with_others_in_the_way();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    std::set<std::string> ran;
    for (const auto& line : new_lines()) {
      if (const auto at = line.find("] LOG:  TRAP: "); at != std::string::npos)
        ran.insert(line.substr(at));
    }
    EXPECT_EQ(ran, std::set<std::string>());
    EXPECT_EQ(sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
