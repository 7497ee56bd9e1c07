// Several Redis servers that know nothing of each other.
#include "torture/topologies/clock.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/proxies.hpp"
#include "torture/topologies/redis_member.hpp"

namespace torture {
namespace {

/// Data is only ever lost, and the clock only ever set, on the same node: that is a minority, however often it happens.
class Redlock : public Topology {
 public:
  explicit Redlock(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      const auto name = "node " + std::to_string(i);
      servers_.push_back(std::make_unique<RedisServer>(
          durable_redis(), "redis-server", i == 0 ? clock_.words() : std::vector<std::string>()));
      members_.push_back(std::make_unique<RedisMember>(name, *servers_.back()));
      passages_.push_back(std::make_unique<Passage>(name, servers_.back()->port()));
    }
  }

  [[nodiscard]] std::string url() const override { return list(passages_); }
  [[nodiscard]] std::string direct_url() const override { return list(servers_); }

  /// A node that lost its data does not count for as long as the longest TTL lasts.
  [[nodiscard]] Promise promise() const override {
    static constexpr auto kLong = std::chrono::seconds(25);
    return {.granted_within = [](interlock::Duration ttl) -> interlock::Duration {
              return 2 * std::max<interlock::Duration>(ttl, kLong) + std::chrono::seconds(1);
            },
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
    append(list, clock_faults(clock_, true));
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
    return list;
  }

 private:
  static Fault lost_data_beside(RedisMember& emptied, RedisMember& stopped) {
    return of_all(
        {.name = "FLUSHALL on " + emptied.name() + ", and " + stopped.name() + " stopped"},
        [&emptied, &stopped](Random&) {
          emptied.check_answers();
          emptied.tell({"FLUSHALL"});
          stopped.freeze();
        },
        [&stopped] { stopped.thaw(); });
  }

  template <class All>
  static std::string list(const All& nodes) {
    std::string hosts;
    for (const auto& node : nodes) hosts += (hosts.empty() ? "" : ",") + node->address();
    return "redlock://" + hosts;
  }

  ServerClock clock_;
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
