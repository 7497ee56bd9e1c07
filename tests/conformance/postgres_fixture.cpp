#include "conformance/served.hpp"
#include "servers/postgres_server.hpp"

namespace interlock::conformance {
namespace {

servers::PostgresServer& server() { return shared<servers::PostgresServer>(); }

const servers::PgBouncer& bouncer() {
  static const servers::PgBouncer one(server());
  return one;
}

class Advisory final : public ServedFixture {
 public:
  Advisory() : ServedFixture(server().url()) {}
  void restart() override { server().restart(); }
};

/// One waiter of each client blocks in a session of its own.
class Blocking final : public ServedFixture {
 public:
  Blocking() : ServedFixture(server().url() + "?wait=block") {}
  void restart() override { server().restart(); }
};

class Lease final : public ServedFixture {
 public:
  Lease() : ServedFixture(server().url() + "?mode=lease") {}
  void restart() override { server().restart(); }
};

/// Through PgBouncer, and told by the server itself.
class Pooled final : public ServedFixture {
 public:
  Pooled() : ServedFixture(bouncer().url() + "?mode=lease&listen=" + server().address()) {}
};

/// Through PgBouncer, and never told.
class Polling final : public ServedFixture {
 public:
  Polling() : ServedFixture(bouncer().url() + "?mode=lease&listen=off") {}
  [[nodiscard]] bool faithful() const override { return false; }
};

[[maybe_unused]] const bool kAdvisory = add_store<Advisory>("postgres");
[[maybe_unused]] const bool kBlocking = add_store<Blocking>("postgres_blocking");
[[maybe_unused]] const bool kLease = add_store<Lease>("postgres_lease");
[[maybe_unused]] const bool kPooled = add_store<Pooled>("postgres_pgbouncer");
[[maybe_unused]] const bool kPolling = add_store<Polling>("postgres_polling");

}  // namespace
}  // namespace interlock::conformance
