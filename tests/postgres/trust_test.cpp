// Whom the schema belongs to. Expected: where somebody else could have put code into it, nothing of it is run, and the
// error says who it is and what to do; where it belongs to one who is trusted, it works as ever.
#include "backends/postgres/schema.hpp"
#include "postgres/postgres_test.hpp"

namespace interlock::postgres_tests {
namespace {

class Trust : public PostgresTest {
 protected:
  Trust() {
    sql("CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO "
        "mallory");
  }

  std::string as(const std::string& role, const std::string& text) {
    return servers::PostgresConsole(server().url(role))(text);
  }
  std::string make_as(const std::string& role) { return as(role, postgres::schema_script()); }
  void start_anew() { sql("DROP SCHEMA IF EXISTS interlock CASCADE"); }

  static void expect_works(const std::string& where) {
    for (const std::string mode : {"advisory", "lease"}) {
      try {
        EXPECT_TRUE(Mutex(connect(where + "?mode=" + mode), "r").try_acquire());
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  /// By all who run it: clients of both modes, and an administrator with the script.
  void expect_refused(const std::string& why, const std::string& role = "postgres") {
    for (const std::string mode : {"advisory", "lease"}) {
      try {
        static_cast<void>(Mutex(connect(server().url(role) + "?mode=" + mode), "r").try_acquire());
        ADD_FAILURE() << "it worked";
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::refused) << error.what();
        EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("with the rights of " + role), std::string::npos)
            << error.what();
      }
    }
    EXPECT_EQ(make_as(role), "(IL006)");
  }
  void grant_the_least(const std::string& role) {
    sql("GRANT USAGE ON SCHEMA interlock TO " + role +
        "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interlock TO " + role +
        "; GRANT USAGE ON ALL SEQUENCES IN SCHEMA interlock TO " + role);
  }
};

TEST_F(Trust, ASchemaThatSomebodyElseMadeFirstIsRefused) {
  ASSERT_EQ(make_as("mallory"), "");
  expect_works(server().url("mallory"));
  for (const std::string signature :
       {"tidy() RETURNS void",
        "lease_inspect(own bigint, ids bigint[], beginning text) RETURNS TABLE (resource text, "
        "line smallint, owner uuid, mode text, slots bigint, capacity bigint, ancestor boolean, "
        "priority bigint, "
        "fence bigint, age_us bigint, left_us bigint, identity text, label text, host text, pid "
        "bigint, tied boolean)"}) {
    ASSERT_EQ(
        as("mallory", "CREATE OR REPLACE FUNCTION interlock." + signature +
                          " LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE mallory SUPERUSER; END $$"),
        "");
  }
  expect_refused("the role mallory owns the schema interlock");
  grant_the_least("app");
  expect_refused("the role mallory owns the schema interlock", "app");
  EXPECT_EQ(sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
}

// What the script would have left as it is: a view in the place of the sequence.
TEST_F(Trust, APlantedSchemaIsNotMadeUseOfByTheScript) {
  ASSERT_EQ(as("mallory",
               "CREATE SCHEMA interlock;"
               "CREATE FUNCTION interlock.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
               "ALTER ROLE mallory "
               "SUPERUSER; RETURN true; END $$;"
               "CREATE VIEW interlock.numbers AS SELECT interlock.trap() AS is_called"),
            "");
  expect_refused("the role mallory owns");
  EXPECT_EQ(sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
}

TEST_F(Trust, WhoMayPutCodeIntoItIsRefused) {
  const auto begin_with = [&](const std::string& text) {
    start_anew();
    ASSERT_EQ(make_as("postgres"), "");
    expect_works(url());
    grant_the_least("app");
    ASSERT_EQ(sql(text), "");
  };
  begin_with("GRANT CREATE ON SCHEMA interlock TO mallory");
  expect_refused("the role mallory may create functions in the schema interlock");
  expect_refused("REVOKE CREATE ON SCHEMA interlock", "app");
  begin_with("GRANT CREATE ON SCHEMA interlock TO PUBLIC");
  expect_refused("everybody may create functions in the schema interlock");
  begin_with("ALTER FUNCTION interlock.guard OWNER TO mallory");
  expect_refused("the role mallory owns the function interlock.guard");
  begin_with("ALTER TABLE interlock.locks OWNER TO mallory");
  expect_refused("the role mallory owns interlock.locks");
  begin_with("GRANT ALL ON ALL TABLES IN SCHEMA interlock TO app");
  expect_refused("the role app may set triggers on interlock.");
  expect_works(server().url("app"));
  // They stay when the right is taken away.
  begin_with(
      "CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;"
      "CREATE TRIGGER odd AFTER INSERT ON interlock.leases EXECUTE FUNCTION public.f()");
  expect_refused("the trigger odd on interlock.leases");
  begin_with(
      "CREATE TABLE public.odd (owner uuid, id bigint, line smallint, FOREIGN KEY (owner, id, "
      "line) "
      "REFERENCES interlock.leases ON DELETE CASCADE)");
  expect_refused("on interlock.leases");
}

// Who may refer to its columns, and what runs without anybody's right to it, once it is there.
TEST_F(Trust, WhatElseRunsWhenItsTablesAreUsedIsRefused) {
  const auto begin_with = [&](const std::string& text) {
    start_anew();
    sql("DROP TABLE IF EXISTS public.part");
    ASSERT_EQ(make_as("postgres"), "");
    grant_the_least("app");
    ASSERT_EQ(sql(text), "");
  };
  begin_with("GRANT REFERENCES (owner, id, line) ON interlock.leases TO mallory");
  expect_refused("the role mallory may refer to the column");
  begin_with("CREATE RULE odd AS ON DELETE TO interlock.locks DO ALSO NOTIFY odd");
  expect_refused("the rule odd on interlock.locks");
  begin_with("CREATE POLICY odd ON interlock.locks USING (true)");
  expect_refused("the policy odd on interlock.locks", "app");
  begin_with("CREATE TABLE public.part () INHERITS (interlock.leases)");
  expect_refused("public.part inherit from interlock.leases");
  sql("DROP TABLE public.part");
  expect_works(url());
}

// Their right is gone, and what they made with it is not. An overload may match better than ours.
TEST_F(Trust, WhatOthersHaveLeftBehindIsRefused) {
  ASSERT_EQ(make_as("postgres"), "");
  sql("GRANT CREATE ON SCHEMA interlock TO mallory");
  ASSERT_EQ(as("mallory",
               "CREATE FUNCTION interlock.high(number int) RETURNS int LANGUAGE plpgsql AS $$ "
               "BEGIN ALTER ROLE mallory SUPERUSER; RETURN 0; END $$"),
            "");
  sql("REVOKE CREATE ON SCHEMA interlock FROM mallory");
  expect_refused("the role mallory owns the function interlock.high");
  sql("DROP FUNCTION interlock.high(int)");
  expect_works(url());
  sql("GRANT CREATE ON SCHEMA interlock TO mallory");
  for (const auto* made :
       {"CREATE VIEW interlock.odd AS SELECT 1", "CREATE SEQUENCE interlock.odd"}) {
    ASSERT_EQ(as("mallory", made), "");
    sql("REVOKE CREATE ON SCHEMA interlock FROM mallory");
    expect_refused("the role mallory owns interlock.odd");
    sql("DROP VIEW interlock.odd");
    sql("DROP SEQUENCE interlock.odd");
    sql("GRANT CREATE ON SCHEMA interlock TO mallory");
  }
  sql("REVOKE CREATE ON SCHEMA interlock FROM mallory");
  // Types, operators and casts are looked up in pg_catalog, where nobody else can put them.
  expect_works(url());
}

// Expected: default privileges of the one who makes it don't let others in.
TEST_F(Trust, DefaultPrivilegesLetNobodyIn) {
  sql("ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory;"
      "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory, PUBLIC");
  for (const bool by_hand : {false, true}) {
    start_anew();
    ASSERT_EQ(by_hand ? make_as("postgres") : "", "");
    expect_works(url());
    expect_works(url());
    EXPECT_EQ(sql("SELECT has_schema_privilege('mallory', 'interlock', 'CREATE'), "
                  "has_table_privilege('mallory', 'interlock.locks', 'TRIGGER, REFERENCES'), "
                  "has_table_privilege('mallory', 'interlock.leases', 'SELECT')"),
              "f|f|t");
  }
}

// A client has seen that there is no schema, and waits for the lock under which it is made. Anybody can have that.
TEST_F(Trust, ASchemaThatAppearsMeanwhileIsRefused) {
  servers::PostgresConsole mallory(server().url("mallory"));
  ASSERT_NE(mallory("SELECT pg_advisory_lock(4787269183346250060)"), "(nothing)");
  for (const std::string mode : {"advisory", "lease"}) {
    std::jthread client([&] {
      try {
        static_cast<void>(Mutex(connect(url("mode=" + mode)), "r", kPatient).try_acquire());
        ADD_FAILURE() << "it worked";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("the role mallory owns"), std::string::npos)
            << error.what();
      }
    });
    ASSERT_TRUE(
        eventually([&] { return sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"; }));
    ASSERT_EQ(mallory(postgres::schema_script()), "");
    for (const std::string function : {"high", "low"}) {
      ASSERT_EQ(mallory("CREATE OR REPLACE FUNCTION interlock." + function +
                        "(number bigint) RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE "
                        "mallory SUPERUSER; RETURN 0; END $$"),
                "");
    }
    mallory("SELECT pg_advisory_unlock_all()");
    client.join();
    EXPECT_EQ(sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
    start_anew();
    ASSERT_NE(mallory("SELECT pg_advisory_lock(4787269183346250060)"), "(nothing)");
  }
}

// Code can RESET what the role's settings have set.
TEST_F(Trust, ARoleThatTurnsIntoAnotherIsNotSafeInItsSchema) {
  sql("GRANT CREATE ON DATABASE postgres TO app; CREATE ROLE admin LOGIN SUPERUSER; ALTER ROLE "
      "admin SET role = app");
  ASSERT_EQ(make_as("app"), "");
  expect_works(server().url("app"));
  expect_refused("the role app owns the schema interlock", "admin");
}

TEST_F(Trust, WhoOwnsTheDatabaseIsTrusted) {
  sql("CREATE ROLE boss LOGIN; ALTER DATABASE postgres OWNER TO boss");
  for (const std::string owner : {"boss", "pg_database_owner", "postgres"}) {
    SCOPED_TRACE(owner);
    start_anew();
    ASSERT_EQ(sql("CREATE SCHEMA interlock AUTHORIZATION " + owner), "");
    EXPECT_EQ(make_as(owner == "postgres" ? "postgres" : "boss"), "");
    grant_the_least("boss");
    grant_the_least("app");
    for (const auto* role : {"boss", "app", "postgres"}) expect_works(server().url(role));
    EXPECT_EQ(make_as("postgres"), "");
  }
}

// One who may act as the owner changes it over. Expected: the others can go on with it.
TEST_F(Trust, AllOfItBelongsToItsOwner) {
  sql("CREATE ROLE boss; CREATE ROLE deputy LOGIN IN ROLE boss; ALTER DATABASE postgres OWNER TO "
      "boss");
  ASSERT_EQ(sql("CREATE SCHEMA interlock AUTHORIZATION boss"), "");
  ASSERT_EQ(make_as("deputy"), "");
  EXPECT_EQ(sql("SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = "
                "'interlock'::regnamespace"),
            "boss");
  sql("DROP FUNCTION interlock.lock_title; COMMENT ON SCHEMA interlock IS 'Interlock 5'");
  ASSERT_EQ(make_as("deputy"), "");
  expect_works(server().url("deputy"));
  expect_works(url());
  grant_the_least("app");
  expect_works(server().url("app"));
  EXPECT_EQ(sql("SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = "
                "'interlock'::regnamespace"),
            "boss");
  EXPECT_EQ(sql("SELECT DISTINCT relowner::regrole FROM pg_class WHERE relnamespace = "
                "'interlock'::regnamespace"),
            "boss");
}

// The right to create in the database is for making it.
TEST_F(Trust, ItsOwnerChangesItOverWithoutTheRightToMakeAnother) {
  sql("GRANT CREATE ON DATABASE postgres TO app");
  expect_works(server().url("app"));
  sql("COMMENT ON SCHEMA interlock IS 'Interlock 5'; REVOKE CREATE ON DATABASE postgres FROM app");
  ASSERT_EQ(make_as("app"), "");
  expect_works(server().url("app"));
}

}  // namespace
}  // namespace interlock::postgres_tests
