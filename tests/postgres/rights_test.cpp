// The rights that docs/postgres.md lists. Expected: with exactly these a role can lock, it can do nothing of what is
// said not to be granted, and none of them could be left out.
#include <regex>
#include <sstream>

#include "backends/postgres/schema.hpp"
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

/// The SQL under a line of the page that begins so.
std::string sql_of_the_docs(const std::string& first_line) {
  std::ifstream file(INTERLOCK_DOCS "/postgres.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const auto begin = page.find("```sql\n" + first_line);
  EXPECT_NE(begin, std::string::npos) << first_line;
  if (begin == std::string::npos) return {};
  const auto text = begin + std::string("```sql\n").size();
  return page.substr(text, page.find("```", text) - text);
}

struct Grant {
  std::string right;
  std::string on;

  [[nodiscard]] std::string give() const { return "GRANT " + right + " ON " + on + " TO app"; }
  [[nodiscard]] std::string take() const { return "REVOKE " + right + " ON " + on + " FROM app"; }
};

/// Each right of each GRANT by itself.
std::vector<Grant> grants_of(const std::string& text) {
  const std::regex line(R"(GRANT ([A-Z, ]+) ON ([A-Za-z ]+) TO app;)");
  const std::regex word(R"([A-Z]+)");
  std::vector<Grant> grants;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
    const auto rights = (*it)[1].str();
    for (std::sregex_iterator one(rights.begin(), rights.end(), word); one != end; ++one)
      grants.push_back({.right = one->str(), .on = (*it)[2].str()});
  }
  return grants;
}

class Rights : public PostgresTest {
 protected:
  Rights() {
    sql("CREATE ROLE app LOGIN; REVOKE ALL ON DATABASE postgres FROM PUBLIC; REVOKE ALL ON SCHEMA "
        "public FROM PUBLIC; "
        "GRANT CONNECT ON DATABASE postgres TO app");
    servers::PostgresConsole maker(server().url());
    EXPECT_EQ(maker(postgres::schema_script()), "");
    sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA interlock FROM PUBLIC");
  }
  std::string app(const std::string& text) {
    return servers::PostgresConsole(server().url("app"))(text);
  }

  /// Runs it in both modes; the errors.
  template <class Use>
  std::string errors_of(Use use) {
    std::string errors;
    for (const std::string mode : {"advisory", "lease"}) {
      // What another try has left must not be in the way.
      const auto name = "r" + std::to_string(++names_);
      try {
        use(server().url("app") + "?mode=" + mode, name);
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::refused) << error.what();
        EXPECT_NE(std::string(error.what()).find("the role lacks a right"), std::string::npos)
            << error.what();
        EXPECT_NE(std::string(error.what()).find("docs/postgres.md"), std::string::npos)
            << error.what();
        errors += mode + ": " + error.what() + "\n";
      }
    }
    return errors;
  }
  static void look(const std::string& where, const std::string& name) {
    static_cast<void>(connect(where).inspect({.resources = {name}}));
  }
  void lock(const std::string& where, const std::string& name) {
    const Options once{.ttl = 600s, .retry = Retry::none()};
    const auto one = connect(where);
    const auto two = connect(where);
    auto lease = Mutex(one, name, once).acquire();
    EXPECT_FALSE(Mutex(two, name, once).try_acquire());
    Waiting waiting(Mutex(two, name, once));
    EXPECT_TRUE(
        eventually([&] { return waiters(name, url(where.substr(where.find('?') + 1))) == 1; }));
    EXPECT_TRUE(lease.extend(700s));
    look(where, name);
    EXPECT_EQ(lease.release(), LeaseState::released);
    auto next = waiting.lease();
    one.evict(name, next.owner());
    EXPECT_TRUE(eventually([&] { return next.lost().stop_requested() || !next.extend(700s); }));
    EXPECT_TRUE(RwLock(one, name + "/rw", once).read().try_upgrade());
    EXPECT_TRUE(MultiLock(one, {name + "/a", name + "/b"}, once).acquire());
    EXPECT_TRUE(Semaphore(one, name + "/slots", 2, once).acquire());
  }
  /// The simplest use of each right, so that one that is missing shows.
  static void touch(const std::string& where, const std::string& name) {
    const auto client = connect(where);
    auto lease = Mutex(client, name, {.ttl = 600s, .retry = Retry::none()}).acquire();
    static_cast<void>(lease.extend(700s));
    static_cast<void>(lease.release());
    look(where, name);
  }

 private:
  int names_ = 0;
};

TEST_F(Rights, ThatAreListedAreEnoughAndEachIsNeeded) {
  const auto text = sql_of_the_docs("-- To lock");
  const auto grants = grants_of(text);
  EXPECT_EQ(grants.size(), 7U) << text;
  EXPECT_NE(errors_of(touch), "");
  ASSERT_EQ(sql(text), "");
  EXPECT_EQ(errors_of([&](const auto& where, const auto& name) { lock(where, name); }), "");
  for (const auto& grant : grants) {
    SCOPED_TRACE(grant.take());
    ASSERT_EQ(sql(grant.take()), "");
    EXPECT_NE(errors_of(touch), "") << "it is not needed";
    ASSERT_EQ(sql(grant.give()), "");
  }
  EXPECT_EQ(errors_of(touch), "");
}

TEST_F(Rights, ToLookAreEnoughAndEachIsNeeded) {
  const auto text = sql_of_the_docs("-- To look");
  const auto grants = grants_of(text);
  EXPECT_EQ(grants.size(), 4U) << text;
  ASSERT_EQ(sql(text), "");
  EXPECT_EQ(errors_of(look), "");
  for (const auto& grant : grants) {
    SCOPED_TRACE(grant.take());
    ASSERT_EQ(sql(grant.take()), "");
    EXPECT_NE(errors_of(look), "") << "it is not needed";
    ASSERT_EQ(sql(grant.give()), "");
  }
  EXPECT_NE(errors_of(touch), "") << "it can lock, too";
}

TEST_F(Rights, ThatAreNotListedAreNotGiven) {
  ASSERT_EQ(sql(sql_of_the_docs("-- To lock")), "");
  for (const std::string statement :
       {"CREATE FUNCTION interlock.f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE OR REPLACE FUNCTION interlock.tidy() RETURNS void LANGUAGE plpgsql AS 'BEGIN END'",
        "ALTER FUNCTION interlock.tidy() SECURITY DEFINER", "DROP FUNCTION interlock.tidy()",
        "CREATE TABLE interlock.t ()", "ALTER TABLE interlock.leases ADD x int",
        "DROP TABLE interlock.locks", "TRUNCATE interlock.leases",
        "CREATE RULE r AS ON DELETE TO interlock.locks DO NOTHING",
        "CREATE TRIGGER t AFTER INSERT ON interlock.locks EXECUTE FUNCTION interlock.tidy()",
        "SELECT setval('interlock.numbers', 1)", "ALTER SEQUENCE interlock.numbers RESTART",
        "CREATE SCHEMA other", "COMMENT ON SCHEMA interlock IS 'Interlock 999'",
        "DROP SCHEMA interlock CASCADE", "GRANT USAGE ON SCHEMA interlock TO PUBLIC"}) {
    const auto answer = app(statement);
    if (statement.starts_with("GRANT")) {
      EXPECT_EQ(sql("SELECT count(*) FROM pg_namespace, aclexplode(nspacl) WHERE nspname = "
                    "'interlock' AND grantee = 0"),
                "0");
    } else {
      EXPECT_EQ(answer, "(42501)") << statement;
    }
  }
  EXPECT_EQ(sql("SELECT has_table_privilege('app', 'interlock.leases', 'REFERENCES')"), "f");
}

// As the page says: a database for locks, whose owner nobody connects as.
TEST_F(Rights, OfAnOwnerRoleOfItsOwnAreEnough) {
  const auto text = sql_of_the_docs("-- A database for locks");
  ASSERT_EQ(sql("DROP OWNED BY app; DROP ROLE app"), "");
  const std::string connect_there = "\\connect locks\n";
  const auto there = text.find(connect_there);
  ASSERT_NE(there, std::string::npos) << text;
  std::istringstream statements(text.substr(0, there));
  for (std::string line; std::getline(statements, line);) {
    if (line.starts_with("--")) continue;
    EXPECT_EQ(sql(line), "") << line;
  }
  const auto locks = [&](const std::string& role) {
    auto where = server().url(role);
    return where.replace(where.rfind('/') + 1, std::string::npos, "locks");
  };
  servers::PostgresConsole admin(locks("postgres"));
  ASSERT_EQ(admin(text.substr(there + connect_there.size())), "");
  ASSERT_EQ(admin(postgres::schema_script()), "");
  ASSERT_EQ(admin(sql_of_the_docs("-- To lock")), "");
  EXPECT_EQ(admin("SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = "
                  "'interlock'::regnamespace"),
            "locks_owner");
  for (const std::string mode : {"advisory", "lease"})
    EXPECT_TRUE(Mutex(connect(locks("app") + "?mode=" + mode), "r").try_acquire());
  EXPECT_EQ(servers::PostgresConsole(locks("app"))("CREATE SCHEMA other"), "(42501)");
  sql("CREATE ROLE mallory LOGIN");
  EXPECT_EQ(servers::PostgresConsole(locks("mallory"))("SELECT 1"), "(nothing)");
}

struct Checked {
  int status;
  std::string said;
};

// The command's answer to whether this URL is good for locks.
Checked config_check(const std::string& url) {
  const TemporaryDirectory directory;
  const auto output = (directory.path() / "output").string();
  const int status = servers::run({INTERLOCK_BIN, "--url", url, "config", "--check"}, output);
  std::ostringstream said;
  said << std::ifstream(output).rdbuf();
  return {status, said.str()};
}

// From no right at all to all that it takes, with the statements of the page.
TEST_F(Rights, ThatAreMissingAreNamedByConfigCheckWithWhatToDo) {
  const auto expect = [&](int status, const std::vector<std::string>& words) {
    for (const std::string mode : {"advisory", "lease"}) {
      const auto [got, said] = config_check(server().url("app") + "?mode=" + mode);
      EXPECT_EQ(got, status) << mode << ": " << said;
      for (const auto& word : words)
        EXPECT_NE(said.find(word), std::string::npos)
            << mode << ": no '" << word << "' in " << said;
      EXPECT_EQ(said.find(" answers") != std::string::npos, status == 0) << mode << ": " << said;
    }
  };
  const std::string grants = "GRANT it: docs/postgres.md (The rights it takes)";
  sql("REVOKE CONNECT ON DATABASE postgres FROM app");
  expect(69, {"the role lacks a right: permission denied for database", grants});
  sql("GRANT CONNECT ON DATABASE postgres TO app");
  expect(69, {"the role lacks a right: permission denied for schema interlock", grants});
  ASSERT_EQ(sql(sql_of_the_docs("-- To look")), "");
  expect(69, {"the role lacks a right: permission denied for table l", grants});
  ASSERT_EQ(sql(sql_of_the_docs("-- To lock")), "");
  expect(0, {});
  EXPECT_EQ(sql("SELECT (SELECT count(*) FROM interlock.locks) + (SELECT count(*) FROM "
                "interlock.leases)"),
            "0");
}

TEST_F(Rights, ToMakeTheSchemaAreAskedForByConfigCheckWhichMakesNone) {
  const auto there = [&] {
    return sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'interlock'");
  };
  sql("DROP SCHEMA interlock CASCADE");
  for (const std::string mode : {"?mode=advisory", "?mode=lease"}) {
    const auto refused = config_check(server().url("app") + mode);
    EXPECT_EQ(refused.status, 69) << refused.said;
    for (const auto* word : {"the role app lacks the right to make the schema interlock",
                             "in the database postgres, so nothing can be locked there",
                             "`interlock schema --url postgres://` prints the SQL"})
      EXPECT_NE(refused.said.find(word), std::string::npos) << refused.said;
    sql("GRANT CREATE ON DATABASE postgres TO app");
    const auto fine = config_check(server().url("app") + mode);
    EXPECT_EQ(fine.status, 0) << fine.said;
    EXPECT_NE(fine.said.find("it has no schema yet, and the first lock makes it"),
              std::string::npos)
        << fine.said;
    EXPECT_EQ(there(), "0");
    sql("REVOKE CREATE ON DATABASE postgres FROM app");
  }
}

}  // namespace
}  // namespace interlock::postgres_tests
