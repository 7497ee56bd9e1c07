// What a Redlock remembers of those who use it.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/redis/redlock_group.hpp"

namespace interlock::redis {

using NodeSet = std::uint64_t;  ///< a bit for each node
inline NodeSet bit(std::size_t node) { return NodeSet{1} << node; }

/// Those who wait through this client: when to ask again.
class Waiters {
 public:
  explicit Waiters(std::size_t majority) : majority_(majority) {}

  /// A number for one that begins to wait, not below this: those of one client stay in order,
  /// whichever nodes answered them first.
  std::uint64_t number(std::uint64_t least) {
    const std::lock_guard lock(mutex_);
    return last_ticket_ = std::max(least, last_ticket_ + 1);
  }
  /// What the nodes may agree on: they would each take their own clock.
  std::uint64_t propose() {
    using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
    const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
    const std::lock_guard lock(mutex_);
    return last_proposed_ = std::max(static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)),
                                     last_proposed_ + 1);
  }
  /// The number that the nodes agreed on; 0: none yet.
  std::uint64_t ask(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    auto& waiter = waiting_[owner];
    waiter.asking = true;
    waiter.free = 0;
    return waiter.ticket;
  }
  /// It waits on, and these nodes were free for it. True: enough are by now.
  bool wait(const Owner& owner, std::uint64_t ticket, NodeSet free) {
    const std::lock_guard lock(mutex_);
    auto& waiter = waiting_[owner];
    waiter.ticket = ticket;
    waiter.free |= free;
    waiter.asking = false;
    return enough(waiter);
  }
  /// A node says that it is this one's turn. True: so do enough of them.
  bool turn(const Owner& owner, std::size_t node) {
    const std::lock_guard lock(mutex_);
    if (const auto it = waiting_.find(owner); it != waiting_.end()) {
      it->second.free |= bit(node);
      return !it->second.asking && enough(it->second);
    }
    // A holder that was evicted, or one that does not wait yet.
    if (others_.size() > kMostOthers) others_.clear();
    const auto said = others_[owner] |= bit(node);
    if (std::popcount(said) < static_cast<int>(majority_)) return false;
    others_.erase(owner);
    return true;
  }
  void forget(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(owner);
  }

 private:
  static constexpr std::size_t kMostOthers = 1000;
  struct Waiter {
    std::uint64_t ticket = 0;
    NodeSet free = 0;
    bool asking = false;
  };
  [[nodiscard]] bool enough(const Waiter& waiter) const {
    return std::popcount(waiter.free) >= static_cast<int>(majority_);
  }

  const std::size_t majority_;
  std::mutex mutex_;
  std::unordered_map<Owner, Waiter> waiting_;
  std::unordered_map<Owner, NodeSet> others_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t last_proposed_ = 0;
};

/// The gates of calls that may still send something.
class Gates {
 public:
  using Gate = RedlockGroup::Gate;

  /// For one call. Known here as long as anybody has it.
  std::shared_ptr<Gate> add(const Owner& owner) {
    std::shared_ptr<Gate> gate(new Gate, [this, owner](Gate* ended) {
      remove(owner, ended);
      delete ended;
    });
    const std::lock_guard lock(mutex_);
    gates_.emplace(owner, gate.get());
    return gate;
  }
  /// The same for an acquisition, which ends all earlier calls of this owner: what they still sent
  /// would undo what the new one does.
  std::shared_ptr<Gate> replace(const Owner& owner) {
    close(owner);
    return add(owner);
  }
  /// It is being released, or asked for anew.
  void close(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = gates_.equal_range(owner);
    std::for_each(begin, end, [](const auto& one) { one.second->close(); });
  }

 private:
  void remove(const Owner& owner, const Gate* gate) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = gates_.equal_range(owner);
    const auto it = std::find_if(begin, end, [&](const auto& one) { return one.second == gate; });
    if (it != end) gates_.erase(it);
  }

  std::mutex mutex_;
  std::unordered_multimap<Owner, Gate*> gates_;
};

}  // namespace interlock::redis
