// A Redis server as faults handle it.
#pragma once

#include "servers/redis_server.hpp"
#include "torture/topologies/member.hpp"

namespace torture {

using interlock::servers::RedisServer;

class RedisMember : public Member {
 public:
  RedisMember(std::string name, RedisServer& server)
      : Member(std::move(name),
               {.kill = [&server] { server.stop(); },
                .start = [&server] { server.start(); },
                .signal = [&server](int number) { server.process().signal(number); }}),
        server_(server) {}

  [[nodiscard]] RedisServer& server() const noexcept { return server_; }
  /// It answers, and is no replica.
  [[nodiscard]] bool is_master() const;
  /// Throws if it refuses.
  void tell(const std::vector<std::string>& words) const;

 private:
  RedisServer& server_;
};

using RedisMembers = std::vector<RedisMember*>;

/// What an administrator does, or a server that has little memory, to one of these. None loses data, but by a failover.
std::vector<Fault> redis_faults(const RedisMembers& members, bool failovers = false);
/// What loses the data of one of them.
std::vector<Fault> redis_data_faults(const RedisMembers& members, bool voids);
/// Their own ports, behind all proxies.
std::vector<int> ports_of(const std::vector<std::unique_ptr<RedisServer>>& servers);
/// What each server is started with: everything that it has confirmed is on its disk.
std::vector<std::string> durable_redis();

}  // namespace torture
