#include "backends/redis/realm.hpp"

#include <cstdio>

namespace interlock::redis {

std::string fresh_channel(const KeyNames& names) {
  return names.prefix() + "wake:" + Owner::random().to_string();
}

std::vector<std::string> risks_of(const Server::Facts& facts, bool replicas_matter) {
  const auto fact = [&](std::string_view name) {
    const auto it = facts.find(name);
    return it == facts.end() ? std::string() : it->second;
  };
  std::vector<std::string> risks;
  const auto policy = fact("maxmemory_policy");
  if (fact("maxmemory") != "0" && !policy.empty() && policy != "noeviction") {
    risks.push_back("when its memory is full, the server may evict locks (maxmemory-policy " +
                    policy + "); noeviction never does");
  }
  int major = 0;
  int minor = 0;
  const auto version = fact("redis_version");
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 &&
      (major < 6 || (major == 6 && minor < 2))) {
    risks.push_back("the server is Redis " + version + "; Interlock is made for 6.2 and later");
  }
  const auto replicas = fact("connected_slaves");
  if (replicas_matter && !replicas.empty() && replicas != "0") {
    risks.emplace_back(
        "the server has replicas, and a failover may lose the latest locks; min-replicas=1 makes "
        "that less likely, and the fence makes it harmless");
  }
  return risks;
}

void warn_of(const std::vector<std::string>& risks, const std::string& node, const WarnSink& warn) {
  for (const auto& risk : risks)
    warn(Error(Errc::refused, risk, {.resource = {}, .node = node, .maybe_held = false}));
}

OneServer::OneServer(Loop& loop, ClaimStyle style, std::string where, const Endpoint& endpoint,
                     const Access& access, WakeSink wake, const Server::Kind& kind)
    : style_(std::move(style)),
      server_(std::make_shared<Server>(loop, std::move(where), endpoint, access, style_.channel,
                                       std::move(wake), kind)),
      replicas_(*server_, kind.min_replicas) {}

OneServer::OneServer(Loop& loop, const KeyNames& names, const std::string& where,
                     const Endpoint& endpoint, const Access& access, WakeSink wake, WarnSink warn,
                     const Server::Kind& kind)
    : OneServer(loop, {.fence = names.fence(), .channel = fresh_channel(names)}, where, endpoint,
                access, std::move(wake), kind) {
  server_->on_facts(
      [warn = std::move(warn), where, matter = min_replicas() == 0](const Server::Facts& facts) {
        warn_of(risks_of(facts, matter), where, warn);
      });
}

void OneServer::run(std::uint16_t /*slot*/, const Script& script, const MakeWords& words, Call how,
                    Server::Then then) {
  server_->run(script, words(style_), how, std::move(then));
}

void OneServer::listen(std::uint16_t /*slot*/, std::function<void()> late) {
  server_->listen(std::move(late));
}

void OneServer::confirm(const Claim& claim, const MakeWords& renewal, Duration patience, Call how,
                        ReplicaWait::Then then) {
  replicas_.confirm(claim, renewal(style_), patience, how, std::move(then));
}

void OneServer::all(Call /*how*/, std::function<void(Servers, std::optional<Error>)> then) {
  then({server_}, std::nullopt);
}

}  // namespace interlock::redis
