// Redis URLs.
#include "backends/redis/cluster.hpp"
#include "backends/redis/redlock.hpp"
#include "backends/redis/sentinel.hpp"
#include "backends/redis/store.hpp"
#include "core/option_file.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace redis {
namespace {

Traits traits_of(std::string where, const Settings& settings) {
  Traits traits;
  traits.name = "redis";
  traits.where = std::move(where);
  traits.warnings = settings.warnings;
  traits.heartbeat = std::chrono::seconds(1);
  traits.call_timeout = settings.access.call_timeout;
  traits.drift_rate = 0.001;
  return traits;
}

void add_warning(Traits& traits, std::optional<std::string> warning) {
  if (warning) traits.warnings.push_back(std::move(*warning));
}

std::unique_ptr<Backend> open_one(Url url) {
  auto settings = Settings::take_from(url);
  const int min_replicas = small_number(url.take("min-replicas", "0"), "min-replicas");
  url.expect_all_taken(Settings::options({"min-replicas"}));
  if (settings.endpoints.size() != 1) {
    throw Error(Errc::invalid, "the store's URL: " + url.scheme + ": names one server");
  }
  const auto& endpoint = settings.endpoints.front();
  auto where = url.scheme + "://" + endpoint.to_string();
  if (url.path.size() > 1 && endpoint.socket.empty())
    settings.access.database = database_of(url.path);
  if (settings.access.database != 0)
    where += (endpoint.socket.empty() ? "/" : "?db=") + std::to_string(settings.access.database);
  auto traits = traits_of(where, settings);
  add_warning(traits, readable_password(settings.endpoints, settings.access, "rediss"));
  auto common = std::make_unique<Common>(settings.prefix);
  auto realm = std::make_unique<OneServer>(common->loop, common->names, where, endpoint,
                                           settings.access, common->wake(), common->warn(),
                                           Server::Kind{.min_replicas = min_replicas});
  return std::make_unique<Store>(std::move(common), std::move(realm), std::move(traits));
}

std::string list(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const auto& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint.to_string();
  return text;
}

// redis+sentinel://s1,s2,s3/master-name[/database]
std::unique_ptr<Backend> open_sentinel(Url url) {
  Sentinel::Plan plan;
  Url of_sentinel = url;  // its own credentials, and the same certificates
  of_sentinel.user = url.take("sentinel-user");
  of_sentinel.password.clear();
  of_sentinel.query.erase("min-replicas");
  for (const auto* name : {"password-file", "password-env"}) {
    of_sentinel.query.erase(name);
    if (auto value = url.take(std::string("sentinel-") + name); !value.empty())
      of_sentinel.query[name] = std::move(value);
  }
  auto settings = Settings::take_from(url, "26379");
  plan.min_replicas = small_number(url.take("min-replicas", "0"), "min-replicas");
  url.expect_all_taken(Settings::options(
      {"min-replicas", "sentinel-user", "sentinel-password-file", "sentinel-password-env"}));
  auto path = url.path.empty() ? url.path : url.path.substr(1);
  if (const auto slash = path.find('/'); slash != std::string::npos) {
    settings.access.database = database_of(path.substr(slash));
    path.resize(slash);
  }
  if (path.empty()) {
    throw Error(
        Errc::invalid,
        "the store's URL: Sentinel needs the master's name: redis+sentinel://s1,s2,s3/name");
  }
  const auto for_sentinel = Settings::take_from(of_sentinel);
  plan.sentinel_access = for_sentinel.access;
  core::add_warnings(settings.warnings, for_sentinel.warnings);
  plan.sentinels = settings.endpoints;
  plan.master = path;
  plan.access = settings.access;
  plan.where = url.scheme + "://" + list(plan.sentinels) + "/" + plan.master;
  auto traits = traits_of(plan.where, settings);
  const auto& asked = plan.access.password.empty() ? plan.sentinel_access : plan.access;
  add_warning(traits, readable_password(plan.sentinels, asked, "rediss+sentinel"));
  auto common = std::make_unique<Common>(settings.prefix);
  auto realm =
      std::make_unique<Sentinel>(common->loop, common->names, plan, common->wake(), common->warn());
  return std::make_unique<Store>(std::move(common), std::move(realm), std::move(traits));
}

std::unique_ptr<Backend> open_cluster(Url url) {
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options());
  if (settings.access.database != 0 || url.path.size() > 1) {
    throw Error(Errc::invalid, "the store's URL: a cluster has no databases");
  }
  auto traits = traits_of(url.scheme + "://" + list(settings.endpoints), settings);
  traits.atomic_claims = false;
  add_warning(traits, readable_password(settings.endpoints, settings.access, "rediss+cluster"));
  auto common = std::make_unique<Common>(settings.prefix);
  auto realm = std::make_unique<Cluster>(common->loop, common->names, settings.endpoints,
                                         settings.access, common->wake(), common->warn());
  return std::make_unique<Store>(std::move(common), std::move(realm), std::move(traits));
}

std::unique_ptr<Backend> open(Url url, const std::shared_ptr<Clock>& /*the server's*/) {
  if (url.scheme == "redlock") return open_redlock(std::move(url));
  if (url.scheme.ends_with("+sentinel")) return open_sentinel(std::move(url));
  if (url.scheme.ends_with("+cluster")) return open_cluster(std::move(url));
  return open_one(std::move(url));
}

}  // namespace
}  // namespace redis

namespace stores {

StoreEntry redis() {
  return {.name = "redis",
          .schemes = {"redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel",
                      "redis+cluster", "rediss+cluster", "redlock"},
          .example = "redis://localhost:6379",
          .open = &interlock::redis::open};
}

}  // namespace stores

}  // namespace interlock
