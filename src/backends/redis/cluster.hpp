// A Redis Cluster: which node serves which slot, learned from the nodes and corrected by what they
// answer (MOVED, ASK).
#pragma once

#include <map>
#include <mutex>

#include "backends/redis/realm.hpp"

namespace interlock::redis {

/// Where a node says that a slot is.
struct Redirect {
  std::uint16_t slot = 0;
  Endpoint to;
};
/// "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381". Nothing if it is anything else.
std::optional<Redirect> parse_redirect(std::string_view text);

struct SlotRange {
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< below kSlots
  Endpoint master;        ///< without a host: the one that was asked
};
/// What CLUSTER SLOTS says. What makes no sense is left out.
std::vector<SlotRange> parse_slots(const redisReply& reply);

class Cluster final : public Realm {
 public:
  Cluster(Loop& loop, const KeyNames& names, std::vector<Endpoint> seeds, Access access,
          WakeSink wake, WarnSink warn);

  [[nodiscard]] bool spread() const noexcept override { return true; }
  void run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
           Server::Then then) override;
  void listen(std::uint16_t slot, std::function<void()> late) override;
  void all(Call how, std::function<void(Servers, std::optional<Error>)> then) override;

 private:
  struct Node {
    std::shared_ptr<Server> server;
    std::string channel;  ///< in a slot of its own
    int channel_slot = -1;
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Job {
    std::uint16_t slot;
    const Script& script;
    MakeWords words;
    Call how;
    Server::Then then;
    int redirects = 0;
  };
  using JobPtr = std::shared_ptr<Job>;
  using Learned = std::function<void(std::optional<Error>)>;

  void go(const JobPtr& job);
  void send(const JobPtr& job, const NodePtr& node, bool asking);
  void answered(const JobPtr& job, Outcome outcome);

  /// Asks the nodes for the map, one after the other until one answers.
  void learn(Learned then);
  void ask_for_map(std::vector<std::shared_ptr<Server>> candidates, std::size_t at);
  bool take_map(const redisReply& reply, const std::shared_ptr<Server>& asked);
  void finish_learning(const std::optional<Error>& error);

  // With the mutex held:
  NodePtr node_at(const Endpoint& endpoint);
  void give_channel(Node& node, std::uint16_t slot);

  Loop& loop_;
  const std::vector<Endpoint> seeds_;
  const Access access_;
  const WakeSink wake_;
  const WarnSink warn_;
  const std::vector<std::string> texts_;  ///< one in each slot
  std::mutex mutex_;
  std::map<Endpoint, NodePtr> nodes_;  ///< the seeds, and those that serve slots
  std::shared_ptr<Server> guide_;      ///< had the map when it was asked last
  std::vector<NodePtr> owners_;        ///< by slot
  bool learning_ = false;
  std::vector<Learned> learners_;
};

}  // namespace interlock::redis
