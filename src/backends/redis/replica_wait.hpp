// Waits until replicas have what was granted, on a connection of its own: WAIT blocks the one it is
// sent on, and renewals would have to queue behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/redis/server.hpp"

namespace interlock::redis {

/// One WAIT is for all grants that were made before it. Any thread.
class ReplicaWait {
 public:
  /// `server` has a connection for this (Server::Kind::min_replicas).
  ReplicaWait(Server& server, int wanted) : server_(server), wanted_(wanted) {}

  [[nodiscard]] int wanted() const noexcept { return wanted_; }

  /// How many replicas have it; or why that can't be told.
  using Then = std::function<void(std::int64_t replicas, const std::optional<Error>& why)>;
  /// `renewal`: the words that renew this claim, with a TTL that is longer than its own, so that it
  /// is written in any case: WAIT looks only at what its own connection wrote. `then` is called once
  /// enough replicas have it, or after `patience`.
  void confirm(const Claim& claim, Words renewal, Duration patience, Call how, Then then);

 private:
  struct Grant {
    std::uint64_t connection;  ///< on which it was renewed
    TimePoint until;
    Call how;
    Then then;
  };

  void next();
  void told(std::vector<Grant> grants, const Outcome& outcome);

  Server& server_;
  const int wanted_;
  std::mutex mutex_;
  std::vector<Grant> waiting_;
  bool under_way_ = false;
};

}  // namespace interlock::redis
