// An advisory lock by hand: what any library on PostgreSQL is measured against.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/// One blocking connection with prepared statements.
class BarePostgres {
 public:
  explicit BarePostgres(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    prepare("try", "SELECT pg_try_advisory_lock($1)");
    prepare("lock", "SELECT pg_advisory_lock($1)");
    prepare("lock_shared", "SELECT pg_advisory_lock_shared($1)");
    prepare("unlock", "SELECT pg_advisory_unlock($1)");
    prepare("unlock_shared", "SELECT pg_advisory_unlock_shared($1)");
  }

  /// One of the statements above.
  void call(const char* statement, const std::string& key) {
    const char* value = key.c_str();
    check(PQexecPrepared(connection_.get(), statement, 1, &value, nullptr, nullptr, 0));
  }
  void cycle() {
    call("try", "-8406566624594013923");
    call("unlock", "-8406566624594013923");
  }
  std::string ask(const char* sql) {
    return PQgetvalue(check(PQexec(connection_.get(), sql)).get(), 0, 0);
  }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  using Result = std::unique_ptr<PGresult, Finish>;

  void prepare(const char* name, const char* text) {
    check(PQprepare(connection_.get(), name, text, 0, nullptr));
  }
  Result check(PGresult* result) {
    Result owned(result);
    const auto status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
      throw std::runtime_error("libpq: " + std::string(PQerrorMessage(connection_.get())));
    return owned;
  }

  std::unique_ptr<PGconn, Finish> connection_;
};

}  // namespace bench
