// What the command needs of a store, and PostgreSQL's modes have or lack.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "conformance/temporary_directory.hpp"
#include "servers/postgres_server.hpp"
#include "servers/process.hpp"

namespace interlock::postgres_tests {
namespace {

struct Ran {
  int status;
  std::string said;
};

Ran run_at_least(const std::string& url, const std::string& option) {
  const TemporaryDirectory directory;
  const auto output = (directory.path() / "output").string();
  const int status = servers::run(
      {INTERLOCK_BIN, "--url", url, "run", "-n", option, "nightly", "--", "/bin/echo", "ran"},
      output);
  std::ostringstream said;
  said << std::ifstream(output).rdbuf();
  return {status, said.str()};
}

TEST(Command, KeepsALockAfterItsEndOnlyWhereLeasesOutliveTheirClient) {
  const servers::PostgresServer server;
  const auto refused = run_at_least(server.url(), "--at-least=1h");
  EXPECT_EQ(refused.status, 64) << refused.said;
  EXPECT_NE(refused.said.find("use ?mode=lease"), std::string::npos) << refused.said;
  EXPECT_EQ(refused.said.find("ran\n"), std::string::npos) << refused.said;

  const auto leases = server.url() + "?mode=lease";
  const auto kept = run_at_least(leases, "--at-least=1h");
  EXPECT_EQ(kept.status, 0) << kept.said;
  const auto second = run_at_least(leases, "--ttl=30s");
  EXPECT_EQ(second.status, 75) << second.said;
}

}  // namespace
}  // namespace interlock::postgres_tests
