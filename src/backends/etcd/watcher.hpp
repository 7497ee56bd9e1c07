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
  Range range{};             ///< without an end: one key
  std::int64_t created = 0;  ///< that key is there since then
  std::int64_t seen = 0;     ///< it was there at this revision
  bool writes = false;       ///< tell `written` of keys that are written, too

  [[nodiscard]] bool same(const Target& other) const {
    return range.begin == other.range.begin && range.end == other.range.end &&
           created == other.created && writes == other.writes;
  }
};

/// Thread-safe.
class Watcher {
 public:
  struct Told {
    WakeSink wake;
    /// The watch stands, but something was written since the target was seen: is it still there?
    std::function<void(const Owner&, const Target&)> check;
    std::function<void(const wire::KeyValue&)> written;
  };
  Watcher(Rpc& rpc, Told told) : rpc_(rpc), tell_(std::move(told)) {}

  /// Wakes this owner once: when a key of the target is deleted, or when nobody can tell any more.
  /// A target that it waits for already goes on.
  void watch(const Owner& owner, Target target);
  void unwatch(const Owner& owner);
  [[nodiscard]] bool watches(const Owner& owner);

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
  const Told tell_;
  std::mutex mutex_;
  std::shared_ptr<Outbox<wire::WatchRequest>> stream_;
  std::unordered_map<Owner, Watch> watches_;
  std::unordered_map<std::int64_t, Owner> owners_;
  std::int64_t last_id_ = 0;
};

}  // namespace interlock::etcd
