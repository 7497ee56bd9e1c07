// Several Redis servers that know nothing of each other.
#include "torture/topologies/clock.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/names.hpp"
#include "torture/topologies/network.hpp"
#include "torture/topologies/proxies.hpp"
#include "torture/topologies/redis_member.hpp"

namespace torture {
namespace {

/// Data is only ever lost, and the clock only ever set, on the same node: that is a minority, however often it happens.
class Redlock : public Topology {
 public:
  explicit Redlock(int nodes) {
    if (Network::permitted()) network_ = std::make_unique<Network>(nodes + 1);
    for (int i = 0; i < nodes; ++i) {
      const auto name = "node " + std::to_string(i);
      auto under = network_ ? network_->under(i) : std::vector<std::string>();
      if (i == 0) append(under, clock_.words());
      const auto host = network_ ? network_->address(i) : "127.0.0.1";
      servers_.push_back(
          std::make_unique<RedisServer>(durable_redis(), "redis-server", std::move(under), host));
      members_.push_back(std::make_unique<RedisMember>(name, *servers_.back()));
      Passage::Proxy::Reach reach;
      if (network_) reach = [this, nodes] { return network_->socket_at(nodes); };
      passages_.push_back(
          std::make_unique<Passage>(name, servers_.back()->port(), host, std::move(reach)));
    }
  }

  [[nodiscard]] std::string url() const override {
    return list(passages_, [](const auto& passage) { return NameServer::name_of(*passage); });
  }
  [[nodiscard]] std::string direct_url() const override {
    if (network_) return list(passages_, [](const auto& passage) { return passage->address(); });
    return list(servers_, [](const auto& server) { return server->address(); });
  }
  [[nodiscard]] std::vector<std::string> environment() const override {
    return names_.environment();
  }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    if (network_) return {};
    return {Network::kNotPermitted};
  }

  /// A node that lost its data does not count for as long as the longest TTL lasts.
  [[nodiscard]] Promise promise() const override {
    static constexpr auto kLong = std::chrono::seconds(25);
    return {.granted_within = [](interlock::Duration ttl) -> interlock::Duration {
              return 2 * std::max<interlock::Duration>(ttl, kLong) + std::chrono::seconds(1);
            },
            .survives_no_memory = true,
            .long_ttl = kLong};
  }

  std::vector<Fault> faults() override {
    RedisMembers members;
    Passages passages;
    for (const auto& member : members_) members.push_back(member.get());
    for (const auto& passage : passages_) passages.push_back(passage.get());
    auto list = redis_faults(members);
    append(list, redis_data_faults({members.front()}, false));
    // A node that forgot a hold early may let somebody else in at once, unlike one that has lost its data.
    append(list, clock_faults(clock_, {.voids = true}));
    append(list, passage_faults(passages, {.copies_bring_back = true}));
    const Members all(members.begin(), members.end());
    const auto majority = members.size() / 2 + 1;
    list.push_back(killed_but({.name = "a minority killed"}, all, majority));
    list.push_back(killed_but({.name = "a majority killed"}, all, majority - 1));
    append(list, unless_fences_go_back(
                     clock_,
                     {of_all({.name = "FLUSHALL on all nodes", .voids = true}, [members](Random&) {
                       for (const auto* member : members) member->check_answers();
                       for (const auto* member : members) member->tell({"FLUSHALL"});
                     })}));
    list.push_back(busy_processors());
    // The node that lost its data does not count until it is mended, and that takes all others.
    for (std::size_t i = 1; i < members.size(); ++i)
      list.push_back(lost_data_beside(*members.front(), *members[i]));
    list.push_back(flapping(all));
    list.push_back(late_on_one(passages));
    list.push_back(names_.silent(passages));
    if (network_) append(list, Partitions(*network_, all).faults("node"));
    return list;
  }

 private:
  static Fault lost_data_beside(RedisMember& emptied, RedisMember& stopped) {
    // Until clients pause for longer than a call takes before they connect again.
    return of_all(
        {.name = "FLUSHALL on " + emptied.name() + ", and " + stopped.name() + " stopped",
         .at_least = std::chrono::seconds(6)},
        [&emptied, &stopped](Random&) {
          emptied.check_answers();
          emptied.tell({"FLUSHALL"});
          stopped.freeze();
        },
        [&stopped] { stopped.thaw(); });
  }

  template <class All, class Address>
  static std::string list(const All& nodes, const Address& address) {
    std::string hosts;
    for (const auto& node : nodes) hosts += (hosts.empty() ? "" : ",") + address(node);
    return "redlock://" + hosts;
  }

  ServerClock clock_;
  NameServer names_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisMember>> members_;
  std::vector<std::unique_ptr<Passage>> passages_;
};

}  // namespace

Kinds redlock_kinds() {
  return {{.name = "redlock", .make = [] { return std::make_unique<Redlock>(3); }},
          {.name = "redlock5", .make = [] { return std::make_unique<Redlock>(5); }}};
}

}  // namespace torture
