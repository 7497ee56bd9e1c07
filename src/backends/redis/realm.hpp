// Where the keys are: on one server, on whichever server Sentinel says, or spread over a cluster.
// The store above does not care, except that a script in a cluster can touch one slot only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

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
  virtual bool listen(std::uint16_t slot, std::function<void(bool listening)> then) = 0;

  /// All servers that have keys of ours.
  using Servers = std::vector<std::shared_ptr<Server>>;
  virtual void all(Call how, std::function<void(Servers, std::optional<Error>)> then) = 0;
};

/// One server, perhaps one after the other.
class OneServer : public Realm {
 public:
  OneServer(Loop& loop, const KeyNames& names, std::string where, const Endpoint& endpoint,
            const Access& access, WakeSink wake, Server::Kind kind = {});

  void run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
           Server::Then then) override;
  bool listen(std::uint16_t slot, std::function<void(bool listening)> then) override;
  void all(Call how, std::function<void(Servers, std::optional<Error>)> then) override;

 protected:
  [[nodiscard]] const std::shared_ptr<Server>& server() const noexcept { return server_; }

 private:
  ClaimStyle style_;
  std::shared_ptr<Server> server_;
};

/// A channel for this client alone.
std::string fresh_channel(const KeyNames& names);

}  // namespace interlock::redis
