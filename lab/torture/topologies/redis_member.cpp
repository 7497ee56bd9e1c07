#include "torture/topologies/redis_member.hpp"

namespace torture {

std::vector<std::string> durable_redis() {
  return {"--appendonly", "yes", "--appendfsync", "always"};
}

std::vector<int> ports_of(const std::vector<std::unique_ptr<RedisServer>>& servers) {
  std::vector<int> ports;
  ports.reserve(servers.size());
  for (const auto& server : servers) ports.push_back(server->port());
  return ports;
}

bool RedisMember::is_master() const {
  return answers() && server_.cli({"ROLE"}).starts_with("master");
}

void RedisMember::tell(const std::vector<std::string>& words) const {
  const auto answer = server_.cli(words);
  if (answer.empty() || answer.starts_with("Could not") || answer.starts_with("READONLY") ||
      answer.find("ERR") != std::string::npos)
    throw std::runtime_error(name() + " to " + words.front() + ": " + answer);
}

namespace {

Fault told(Nature nature, const RedisMembers& members, const std::vector<std::string>& words) {
  return one_of<RedisMember>(
      std::move(nature), members,
      [words](RedisMember& member, Random&) {
        member.check_answers();
        member.tell(words);
      },
      [](RedisMember&) {});
}

/// Little memory, until it heals.
Fault short_of_memory(const RedisMembers& members) {
  return one_of<RedisMember>(
      {.name = "out of memory"}, members,
      [](RedisMember& member, Random&) {
        member.check_answers();
        member.tell({"CONFIG", "SET", "maxmemory", "1"});
      },
      [](RedisMember& member) {
        member.awake([&] { member.tell({"CONFIG", "SET", "maxmemory", "0"}); });
      });
}

}  // namespace

std::vector<Fault> redis_faults(const RedisMembers& members, bool failovers) {
  const Members all(members.begin(), members.end());
  const auto nature = [=](std::string name) {
    return failovers ? may_fail_over(std::move(name)) : Nature{.name = std::move(name)};
  };
  return {
      killed(nature("killed"), all),
      frozen(nature("stopped"), all),
      restarted(nature("restarted with its data"), all),
      told({.name = "SCRIPT FLUSH", .disturbs = false}, members, {"SCRIPT", "FLUSH"}),
      told(nature("CLIENT KILL"), members, {"CLIENT", "KILL", "TYPE", "normal"}),
      told({.name = "CLIENT KILL of subscribers"}, members, {"CLIENT", "KILL", "TYPE", "pubsub"}),
      told(nature("CLIENT PAUSE"), members, {"CLIENT", "PAUSE", "1500"}),
      short_of_memory(members),
  };
}

std::vector<Fault> redis_data_faults(const RedisMembers& members, bool voids) {
  const auto of_master = [&](std::string name, std::function<void(RedisMember&, Random&)> what) {
    return one_of<RedisMember>(
        {.name = std::move(name), .voids = voids}, members, std::move(what), [](RedisMember&) {},
        [](RedisMember& member) { return member.is_master(); });
  };
  return {
      of_master("restarted without data",
                [](RedisMember& member, Random&) {
                  member.restart([&] { member.server().remove_data(); });
                }),
      of_master("FLUSHALL", [](RedisMember& member, Random&) { member.tell({"FLUSHALL"}); }),
      // What an eviction policy other than noeviction does to some keys.
      of_master("eviction",
                [](RedisMember& member, Random& random) {
                  constexpr int kMost = 10;
                  for (auto keys = 1 + random() % kMost; keys > 0; --keys) {
                    auto key = member.server().cli({"RANDOMKEY"});
                    key.erase(key.find_last_not_of('\n') + 1);
                    if (!key.empty()) member.tell({"UNLINK", key});
                  }
                }),
  };
}

}  // namespace torture
