// Redis URLs.
#include "backends/redis/redlock.hpp"
#include "backends/redis/store.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace redis {
namespace {

Traits traits_of(std::string where, const Settings& settings) {
  Traits traits;
  traits.name = "redis";
  traits.where = std::move(where);
  traits.heartbeat = std::chrono::seconds(1);
  traits.call_timeout = settings.access.call_timeout;
  traits.drift_rate = 0.001;
  return traits;
}

std::unique_ptr<Backend> open_one(Url url) {
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options());
  if (settings.endpoints.size() != 1) {
    throw Error(Errc::invalid, "the store's URL: " + url.scheme + ": names one server");
  }
  const auto& endpoint = settings.endpoints.front();
  auto where = url.scheme + "://" + endpoint.to_string();
  if (url.path.size() > 1 && endpoint.socket.empty())
    settings.access.database = database_of(url.path);
  if (settings.access.database != 0)
    where += (endpoint.socket.empty() ? "/" : "?db=") + std::to_string(settings.access.database);
  auto common = std::make_unique<Common>(settings.prefix);
  auto realm = std::make_unique<OneServer>(common->loop, common->names, where, endpoint,
                                           settings.access, common->wake());
  return std::make_unique<Store>(std::move(common), std::move(realm),
                                 traits_of(std::move(where), settings));
}

std::unique_ptr<Backend> open(Url url, const std::shared_ptr<Clock>& /*the server's*/) {
  if (url.scheme == "redlock") return open_redlock(std::move(url));
  return open_one(std::move(url));
}

}  // namespace
}  // namespace redis

namespace stores {

StoreEntry redis() {
  return {.name = "redis",
          .schemes = {"redis", "rediss", "redis+unix", "redlock"},
          .example = "redis://localhost:6379",
          .open = &interlock::redis::open};
}

}  // namespace stores

}  // namespace interlock
