#include "torture/topologies/redis_member.hpp"

namespace torture {

std::vector<std::string> durable_redis() {
  return {"--appendonly", "yes", "--appendfsync", "always"};
}

void RedisMember::tell(const std::vector<std::string>& words) const {
  const auto answer = server_.cli(words);
  if (answer.empty() || answer.starts_with("Could not") || answer.find("ERR") != std::string::npos)
    throw std::runtime_error(name() + " to " + words.front() + ": " + answer);
}

namespace {

Fault told(Nature nature, const RedisMembers& members, std::vector<std::string> words) {
  return one_of<RedisMember>(
      std::move(nature), members,
      [words](RedisMember& member, Random&) {
        member.check_answers();
        member.tell(words);
      },
      [](RedisMember&) {});
}

/// Little memory, until it heals.
Fault short_of_memory(Nature nature, const RedisMembers& members, const std::string& policy) {
  return one_of<RedisMember>(
      std::move(nature), members,
      [policy](RedisMember& member, Random&) {
        member.check_answers();
        member.tell({"CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1"});
      },
      [](RedisMember& member) {
        member.awake([&] {
          member.tell({"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0"});
        });
      });
}

}  // namespace

std::vector<Fault> redis_faults(const RedisMembers& members) {
  const Members all(members.begin(), members.end());
  return {
      killed({.name = "killed"}, all),
      frozen({.name = "stopped"}, all),
      restarted({.name = "restarted with its data"}, all),
      told({.name = "SCRIPT FLUSH", .disturbs = false}, members, {"SCRIPT", "FLUSH"}),
      told({.name = "CLIENT KILL"}, members, {"CLIENT", "KILL", "TYPE", "normal"}),
      told({.name = "CLIENT KILL of subscribers"}, members, {"CLIENT", "KILL", "TYPE", "pubsub"}),
      told({.name = "CLIENT PAUSE"}, members, {"CLIENT", "PAUSE", "1500"}),
      short_of_memory({.name = "out of memory"}, members, "noeviction"),
  };
}

std::vector<Fault> redis_data_faults(const RedisMembers& members, bool voids) {
  return {
      one_of<RedisMember>(
          {.name = "restarted without data", .voids = voids}, members,
          [](RedisMember& member, Random&) {
            member.restart([&] { member.server().remove_data(); });
          },
          [](RedisMember&) {}),
      told({.name = "FLUSHALL", .voids = voids}, members, {"FLUSHALL"}),
      short_of_memory({.name = "eviction", .voids = voids}, members, "allkeys-random"),
  };
}

}  // namespace torture
