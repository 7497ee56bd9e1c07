// etcd's leases: they clean up behind a client that is gone.
//
// A client has a lease for each length of TTL that it uses, not one for each lock, and one for all
// its waiters. A lease is half as long again as the TTLs on it, at least, and is handed out only
// while it is sure to outlast them; whoever holds something counts on its own TTL and never on
// the lease.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/etcd/rpc.hpp"

namespace interlock::etcd {

using LeaseId = std::int64_t;

/// Thread-safe.
class Leases {
 public:
  /// `lost` is told of a lease that ended before its time.
  Leases(Rpc& rpc, std::function<void(LeaseId)> lost) : rpc_(rpc), lost_(std::move(lost)) {}

  struct Got {
    LeaseId id = 0;
    std::optional<Failure> failure{};
  };
  using Use = std::function<void(const Got&, Call)>;
  /// A lease that lasts for the TTL from now on: at once, if there is one.
  void for_holder(Duration ttl, Call call, Use use);
  void for_waiter(Call call, Use use);
  /// The waiters' lease if there is one, and it is used now; 0 otherwise.
  LeaseId waiters();

  /// etcd does not know one of these. (`again`: it was none of those that were given up then.)
  void forget_one_of(const std::vector<LeaseId>& ids, bool again);
  /// Keeps alive what is in use.
  void tick();

  /// A waiter whose client is gone is forgotten after this time.
  static constexpr Duration kWaiters = std::chrono::seconds(5);

 private:
  struct Lease {
    LeaseId id = 0;
    Duration length{};
    TimePoint until{};  ///< it lasts until then, whatever happens
    TimePoint asked{};  ///< when it was last asked to be kept alive, or granted
    std::optional<TimePoint> waiting_since{};  ///< and not answered yet
    TimePoint used{};
    bool on_its_way = false;
    struct Waiting {
      Duration ttl;
      Call call;
      Use use;
    };
    std::vector<Waiting> queue{};
  };

  LeaseId at_hand(std::int64_t length, Duration ttl);
  void get(std::int64_t length, Duration ttl, Call call, Use use);
  void granted(std::int64_t length, TimePoint sent,
               const Outcome<wire::LeaseGrantResponse>& outcome, Call call, const Use& use);
  void kept_alive(const wire::LeaseKeepAliveResponse& response);
  void stream_ended();

  Rpc& rpc_;
  const std::function<void(LeaseId)> lost_;
  std::mutex mutex_;
  std::map<std::int64_t, Lease> leases_;                         ///< by length in seconds
  std::shared_ptr<Outbox<wire::LeaseKeepAliveRequest>> stream_;  ///< the background thread's
};

}  // namespace interlock::etcd
