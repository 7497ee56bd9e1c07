// Waiters are told when what is ahead of them goes away: one stream of watches for all of a client.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "backends/etcd/keys.hpp"
#include "backends/etcd/rpc.hpp"

namespace interlock::etcd {

/// What a waiter waits for.
struct Target {
  Range range{};          ///< without an end: one key
  std::int64_t from = 0;  ///< the first revision that is news
  bool writes = false;    ///< tell `written` of keys that are written, too

  [[nodiscard]] bool same(const Target& other) const {
    return range.begin == other.range.begin && range.end == other.range.end &&
           writes == other.writes;
  }
};

/// Thread-safe.
class Watcher {
 public:
  using Written = std::function<void(const wire::KeyValue&)>;
  Watcher(Rpc& rpc, WakeSink wake, Written written)
      : rpc_(rpc), wake_(std::move(wake)), written_(std::move(written)) {}

  /// Wakes this owner once: when a key of the target is deleted, or when nobody can tell any more.
  /// A target that it waits for already goes on.
  void watch(const Owner& owner, Target target);
  void unwatch(const Owner& owner);

 private:
  struct Watch {
    std::int64_t id = 0;
    Target target{};
    TimePoint since{};
  };

  void told(const wire::WatchResponse& response);
  void ended();
  /// Under the lock: takes it out, and cancels it.
  void drop(std::unordered_map<Owner, Watch>::iterator it);

  Rpc& rpc_;
  const WakeSink wake_;
  const Written written_;
  std::mutex mutex_;
  std::shared_ptr<Outbox<wire::WatchRequest>> stream_;
  std::unordered_map<Owner, Watch> watches_;
  std::unordered_map<std::int64_t, Owner> owners_;
  std::int64_t last_id_ = 0;
};

}  // namespace interlock::etcd
