// Three masters with a replica each.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "torture/topologies/kinds.hpp"
#include "torture/topologies/proxies.hpp"
#include "torture/topologies/redis_member.hpp"

namespace torture {
namespace {

using interlock::servers::RedisCluster;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string line_of(const std::string& text) {
  const auto lines = lines_of(text);
  if (lines.empty()) throw std::runtime_error("a node does not answer");
  return lines.front();
}

/// A slot on its way from one master to another.
class Move {
 public:
  Move(RedisMember& from, RedisMember& to, std::string slot)
      : from_(&from), to_(&to), slot_(std::move(slot)) {}

  void begin() const {
    to_->tell({"CLUSTER", "SETSLOT", slot_, "IMPORTING", id(*from_)});
    from_->tell({"CLUSTER", "SETSLOT", slot_, "MIGRATING", id(*to_)});
    move_keys();
  }
  void end(const RedisMembers& nodes) const {
    move_keys();
    const auto owner = id(*to_);
    to_->tell({"CLUSTER", "SETSLOT", slot_, "NODE", owner});
    from_->tell({"CLUSTER", "SETSLOT", slot_, "NODE", owner});
    for (const auto* node : nodes) node->check_answers();
  }
  [[nodiscard]] std::string text() const {
    return "slot " + slot_ + " from " + from_->name() + " to " + to_->name();
  }

 private:
  static std::string id(const RedisMember& member) {
    return line_of(member.server().cli({"CLUSTER", "MYID"}));
  }
  void move_keys() const {
    for (;;) {
      const auto keys = lines_of(from_->server().cli({"CLUSTER", "GETKEYSINSLOT", slot_, "100"}));
      if (keys.empty()) return;
      std::vector<std::string> words{
          "MIGRATE", "127.0.0.1", std::to_string(to_->server().port()), "", "0", "5000", "KEYS"};
      words.insert(words.end(), keys.begin(), keys.end());
      from_->tell(words);
    }
  }

  RedisMember* from_;
  RedisMember* to_;
  std::string slot_;
};

class Cluster final : public Topology {
 public:
  Cluster() {
    cluster_ = std::make_unique<RedisCluster>(durable_redis(), [this](RedisServer& server) {
      passages_.push_back(
          std::make_unique<Passage>("node " + std::to_string(passages_.size()), server.port()));
      return passages_.back()->port();
    });
    for (const auto& node : cluster_->nodes())
      nodes_.push_back(
          std::make_unique<RedisMember>("node " + std::to_string(nodes_.size()), *node));
  }

  [[nodiscard]] std::string url() const override {
    return "redis+cluster://" + passages_.at(0)->address() + "," + passages_.at(1)->address() +
           "," + passages_.at(2)->address();
  }
  [[nodiscard]] Promise promise() const override {
    // While a slot is moved, its leases can't be renewed.
    return {.shortest_ttl = std::chrono::seconds(3), .granted_within = [](interlock::Duration ttl) {
              // A failover may have just begun.
              return 2 * ttl + std::chrono::seconds(11);
            }};
  }
  [[nodiscard]] std::vector<int> candidates() const override { return ports_of(cluster_->nodes()); }

  std::vector<Fault> faults() override {
    RedisMembers nodes;
    Passages passages;
    for (const auto& node : nodes_) nodes.push_back(node.get());
    for (const auto& passage : passages_) passages.push_back(passage.get());
    auto list = redis_faults(nodes, true);
    append(list, redis_data_faults(nodes, true));
    list.push_back(of_all(may_fail_over("CLUSTER FAILOVER"), [this](Random& random) {
      pick(random, "slave").tell({"CLUSTER", "FAILOVER"});
    }));
    list.push_back(migration(nodes));
    append(list,
           passage_faults(passages, {.cuts = true, .delays = true, .copies_bring_back = true}));
    list.push_back(busy_processors(may_fail_over()));
    list.push_back(flapping(Members(nodes.begin(), nodes.end()), may_fail_over()));
    return list;
  }

 private:
  [[nodiscard]] RedisMember& pick(Random& random, const std::string& role) const {
    RedisMembers found;
    for (const auto& node : nodes_) {
      if (node->answers() && node->server().cli({"ROLE"}).starts_with(role))
        found.push_back(node.get());
    }
    if (found.empty()) throw std::runtime_error("no node is a " + role);
    return *found.at(random() % found.size());
  }

  /// Of a slot that is in use, if there is one.
  [[nodiscard]] Move choose(Random& random) const {
    RedisMember* from = nullptr;
    std::vector<std::string> keys;
    for (int attempt = 0; keys.empty() && attempt < 30; ++attempt) {
      from = &pick(random, "master");
      keys = lines_of(from->server().cli({"--scan"}));
    }
    if (keys.empty()) throw std::runtime_error("no node has keys");
    auto* to = from;
    for (int attempt = 0; to == from && attempt < 30; ++attempt) to = &pick(random, "master");
    if (to == from) throw std::runtime_error("there is one master only");
    const auto& key = keys.at(random() % keys.size());
    return {*from, *to, line_of(from->server().cli({"CLUSTER", "KEYSLOT", key}))};
  }

  Fault migration(const RedisMembers& nodes) {
    auto moving = std::make_shared<std::optional<Move>>();
    Healing healing;
    return {.name = "slot moved",
            .begin =
                [this, nodes, moving, healing](Random& random) mutable {
                  healing.stop();
                  for (const auto* node : nodes) node->check_answers();
                  *moving = choose(random);
                  try {
                    (*moving)->begin();
                  } catch (const std::exception&) {
                    mend(healing);
                    throw;
                  }
                  return (*moving)->text();
                },
            .heal =
                [this, nodes, moving, healing]() mutable {
                  try {
                    (*moving)->end(nodes);
                  } catch (const std::exception&) {
                    mend(healing);
                  }
                }};
  }
  /// Other faults have come between: redis-cli closes slots that were left open.
  void mend(Healing& healing) const {
    const auto* server = cluster_->nodes().front().get();
    healing.begin([server] {
      server->cli({"--cluster", "fix", server->address(), "--cluster-yes"});
      const auto checked = server->cli({"--cluster", "check", server->address()});
      if (checked.find("[OK] All nodes agree") == std::string::npos ||
          checked.find("[WARNING]") != std::string::npos)
        throw std::runtime_error("slots are still open");
    });
  }

  std::vector<std::unique_ptr<Passage>> passages_;
  std::unique_ptr<RedisCluster> cluster_;
  std::vector<std::unique_ptr<RedisMember>> nodes_;
};

}  // namespace

Kinds cluster_kinds() { return {kind<Cluster>("cluster")}; }

}  // namespace torture
