// Postgres URLs.
#include "backends/postgres/lease_store.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/session_store.hpp"

namespace interlock {

namespace postgres {
namespace {

std::unique_ptr<Backend> open(Url url, const std::shared_ptr<Clock>& /*the server's*/) {
  auto settings = Settings::from(std::move(url));
  if (settings.kind == Settings::Kind::lease)
    return std::make_unique<LeaseStore>(std::move(settings));
  return std::make_unique<SessionStore>(std::move(settings));
}

}  // namespace
}  // namespace postgres

namespace stores {

StoreEntry postgres() {
  return {.name = "postgres",
          .schemes = {"postgres", "postgresql"},
          .example = "postgres://localhost/app",
          .open = &interlock::postgres::open,
          .schema = &interlock::postgres::schema_script};
}

}  // namespace stores

}  // namespace interlock
