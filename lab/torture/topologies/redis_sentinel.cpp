// A master, two replicas, and three sentinels.
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/proxies.hpp"
#include "torture/topologies/redis_member.hpp"

namespace torture {
namespace {

using interlock::servers::SentinelGroup;

class Sentinel final : public Topology {
 public:
  Sentinel() {
    group_ = std::make_unique<SentinelGroup>(2, durable_redis(), [this](RedisServer& server) {
      passages_.push_back(
          std::make_unique<Passage>("server " + std::to_string(passages_.size()), server.port()));
      return passages_.back()->port();
    });
    for (std::size_t i = 0; i < group_->servers().size(); ++i)
      servers_.push_back(
          std::make_unique<RedisMember>("server " + std::to_string(i), *group_->servers().at(i)));
    for (std::size_t i = 0; i < group_->sentinels().size(); ++i)
      sentinels_.push_back(std::make_unique<RedisMember>("sentinel " + std::to_string(i),
                                                         *group_->sentinels().at(i)));
  }

  [[nodiscard]] std::string url() const override { return group_->url(); }
  [[nodiscard]] Promise promise() const override {
    return {.granted_within = [](interlock::Duration ttl) {
      // A failover may have just begun.
      return 2 * ttl + std::chrono::seconds(11);
    }};
  }
  [[nodiscard]] std::vector<int> candidates() const override { return ports_of(group_->servers()); }

  std::vector<Fault> faults() override {
    RedisMembers servers;
    RedisMembers sentinels;
    Passages passages;
    for (const auto& server : servers_) servers.push_back(server.get());
    for (const auto& sentinel : sentinels_) sentinels.push_back(sentinel.get());
    for (const auto& passage : passages_) passages.push_back(passage.get());
    const Members watchers(sentinels.begin(), sentinels.end());

    auto list = redis_faults(servers, true);
    append(list, redis_data_faults(servers, true));
    append(list, {killed({.name = "a sentinel killed"}, watchers),
                  frozen({.name = "a sentinel stopped"}, watchers),
                  killed_but({.name = "two sentinels killed"}, watchers, 1),
                  restarted({.name = "a sentinel restarted"}, watchers),
                  of_master(
                      "master killed", [](RedisMember& master) { master.take_down(); },
                      [](RedisMember& master) { master.bring_back(); }),
                  of_master(
                      "master stopped", [](RedisMember& master) { master.freeze(); },
                      [](RedisMember& master) { master.thaw(); }),
                  one_of<RedisMember>(
                      may_fail_over("SENTINEL FAILOVER"), sentinels,
                      [](RedisMember& sentinel, Random&) {
                        sentinel.check_answers();
                        sentinel.tell({"SENTINEL", "FAILOVER", "main"});
                      },
                      [](RedisMember&) {})});
    append(list,
           passage_faults(passages, {.cuts = true, .delays = true, .copies_bring_back = true}));
    list.push_back(busy_processors(may_fail_over()));
    list.push_back(flapping(Members(servers.begin(), servers.end()), may_fail_over()));
    return list;
  }

 private:
  [[nodiscard]] RedisMember& master() const {
    for (const auto& server : servers_) {
      if (server->is_master()) return *server;
    }
    throw std::runtime_error("there is no master");
  }
  Fault of_master(std::string name, std::function<void(RedisMember&)> begin,
                  std::function<void(RedisMember&)> heal) {
    return of_found<RedisMember>(
        may_fail_over(std::move(name)), [this]() -> RedisMember& { return master(); },
        std::move(begin), std::move(heal));
  }

  std::vector<std::unique_ptr<Passage>> passages_;
  std::unique_ptr<SentinelGroup> group_;
  std::vector<std::unique_ptr<RedisMember>> servers_;
  std::vector<std::unique_ptr<RedisMember>> sentinels_;
};

}  // namespace

Kinds sentinel_kinds() { return {kind<Sentinel>("sentinel")}; }

}  // namespace torture
