#include "conformance/suite.hpp"
#include "servers/postgres_server.hpp"

namespace interlock::conformance {
namespace {

// Servers are started once for all tests of a process, and every test has a prefix of its own.
servers::PostgresServer& server() {
  static servers::PostgresServer one;
  return one;
}

const servers::PgBouncer& bouncer() {
  static const servers::PgBouncer one(server());
  return one;
}

class PostgresFixture : public StoreFixture {
 public:
  explicit PostgresFixture(const std::string& url)
      : url_(url + "prefix=t" + Owner::random().brief() + ":") {}
  std::unique_ptr<Backend> open() override { return stores::open(url_); }

 private:
  std::string url_;
};

class Advisory final : public PostgresFixture {
 public:
  Advisory() : PostgresFixture(server().url() + "?") {}
  void restart() override { server().restart(); }
};

class Lease final : public PostgresFixture {
 public:
  Lease() : PostgresFixture(server().url() + "?mode=lease&") {}
  void restart() override { server().restart(); }
};

/// Through PgBouncer, and told by the server itself.
class Pooled final : public PostgresFixture {
 public:
  Pooled() : PostgresFixture(bouncer().url() + "?mode=lease&listen=" + server().address() + "&") {}
};

/// Through PgBouncer, and never told.
class Polling final : public PostgresFixture {
 public:
  Polling() : PostgresFixture(bouncer().url() + "?mode=lease&listen=off&") {}
  [[nodiscard]] bool faithful() const override { return false; }
};

[[maybe_unused]] const bool kAdvisory = add_store<Advisory>("postgres");
[[maybe_unused]] const bool kLease = add_store<Lease>("postgres_lease");
[[maybe_unused]] const bool kPooled = add_store<Pooled>("postgres_pgbouncer");
[[maybe_unused]] const bool kPolling = add_store<Polling>("postgres_polling");

}  // namespace
}  // namespace interlock::conformance
