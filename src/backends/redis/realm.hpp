// Where the keys are: on one server, on whichever server Sentinel says, or spread over a cluster.
// The store above does not care, except that a script in a cluster can touch one slot only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/redis/replica_wait.hpp"
#include "backends/redis/server.hpp"

namespace interlock::redis {

class Realm {
 public:
  Realm() = default;
  Realm(const Realm&) = delete;
  Realm& operator=(const Realm&) = delete;
  virtual ~Realm() = default;

  /// The keys are spread over slots.
  [[nodiscard]] virtual bool spread() const noexcept { return false; }

  /// The words of a call, for the server that gets it.
  using MakeWords = std::function<Words(const ClaimStyle&)>;

  /// Runs a script where this slot is. `words` throws nothing.
  virtual void run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
                   Server::Then then) = 0;

  /// Server::listen, where this slot is.
  virtual void listen(std::uint16_t slot, std::function<void()> late) = 0;

  /// How many replicas have to confirm a grant.
  [[nodiscard]] virtual int min_replicas() const noexcept { return 0; }
  /// ReplicaWait::confirm, if that is more than none.
  virtual void confirm(const Claim& /*claim*/, const MakeWords& /*renewal*/, Duration /*patience*/,
                       Call /*how*/, ReplicaWait::Then then) {
    std::exchange(then, {})(0, std::nullopt);
  }

  /// All servers that have keys of ours.
  using Servers = std::vector<std::shared_ptr<Server>>;
  virtual void all(Call how, std::function<void(Servers, std::optional<Error>)> then) = 0;
};

/// One server, perhaps one after the other.
class OneServer : public Realm {
 public:
  OneServer(Loop& loop, const KeyNames& names, const std::string& where, const Endpoint& endpoint,
            const Access& access, WakeSink wake, WarnSink warn, const Server::Kind& kind);

  void run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
           Server::Then then) override;
  void listen(std::uint16_t slot, std::function<void()> late) override;
  void all(Call how, std::function<void(Servers, std::optional<Error>)> then) override;
  [[nodiscard]] int min_replicas() const noexcept override { return replicas_.wanted(); }
  void confirm(const Claim& claim, const MakeWords& renewal, Duration patience, Call how,
               ReplicaWait::Then then) override;

 protected:
  /// Without a look at how the server is set up.
  OneServer(Loop& loop, ClaimStyle style, std::string where, const Endpoint& endpoint,
            const Access& access, WakeSink wake, const Server::Kind& kind);
  [[nodiscard]] const std::shared_ptr<Server>& server() const noexcept { return server_; }
  [[nodiscard]] const ClaimStyle& style() const noexcept { return style_; }

 private:
  ClaimStyle style_;
  std::shared_ptr<Server> server_;
  ReplicaWait replicas_;
};

/// What is risky for locks about a server, in words; `replicas_matter`: writes that only it has seen
/// can be lost with it.
std::vector<std::string> risks_of(const Server::Facts& facts, bool replicas_matter);
/// Tells of each. `node`: what they are about.
void warn_of(const std::vector<std::string>& risks, const std::string& node, const WarnSink& warn);

/// A channel for this client alone.
std::string fresh_channel(const KeyNames& names);

}  // namespace interlock::redis
