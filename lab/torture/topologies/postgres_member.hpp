// A PostgreSQL server, or a PgBouncer, as faults handle it.
#pragma once

#include "servers/postgres_server.hpp"
#include "torture/topologies/last_will.hpp"
#include "torture/topologies/member.hpp"

namespace torture {

using interlock::servers::PgBouncer;
using interlock::servers::PostgresServer;

/// Stops processes. They go on with SIGCONT, or when this process ends: they would not notice its end.
class Stopped {
 public:
  void signal(int number, const std::vector<pid_t>& processes);

 private:
  std::unique_ptr<LastWill> until_;
};

class PostgresMember : public Member {
 public:
  PostgresMember(std::string name, PostgresServer& server);

  [[nodiscard]] PostgresServer& server() const noexcept { return server_; }
  /// Throws if it does not answer.
  std::string ask(const std::string& sql) const;

 private:
  PostgresServer& server_;
};

/// Settings under which locks and connections are soon used up.
std::vector<std::string> small_postgres();

/// `sessions`: a lease ends with its session.
std::vector<Fault> postgres_faults(PostgresMember& member, bool sessions);
/// pg_terminate_backend.
std::vector<Fault> session_faults(const std::function<PostgresMember&()>& member, bool sessions);

}  // namespace torture
