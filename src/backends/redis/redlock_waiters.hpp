// What one client of a Redlock remembers of its owners that wait in line: their numbers, and when enough nodes say
// that it is their turn.
//
//     event                              | what it remembers                      | says
//     -----------------------------------+----------------------------------------+------------------------------
//     ask: the owner asks all nodes      | it asks; no node is free for it        | its number, 0: none yet
//     turn: a node says it is its turn   | this node is free for it               | wake, if it waits and enough are
//     wait: it waits on                  | its number, and who was free while it  | wake, if enough are by now
//                                        | asked                                  |
//     listens: a node's messages reach   | this node is heard; late, if they did  | wake, once enough are heard and
//     us from now on                     | not when it began to wait              | one of them was late
//     forget                             | nothing                                |
//
// A turn of an owner that is not known here counts, too: a holder that was evicted, or one that does not wait yet.
//
// A plain machine: no lock, no clock.
#pragma once

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "backends/redis/redlock_message.hpp"

namespace interlock::redis {

class RedlockWaiters {
 public:
  explicit RedlockWaiters(std::size_t majority) : majority_(majority) {}

  /// A number for one that begins to wait, not below this: those of one client stay in order,
  /// whichever nodes answered them first.
  std::uint64_t number(std::uint64_t least) {
    return last_ticket_ = std::max(least, last_ticket_ + 1);
  }
  /// What the nodes may agree on: they would each take their own clock. `clock`: the client's, in microseconds.
  std::uint64_t propose(std::uint64_t clock) {
    return last_proposed_ = std::max(clock, last_proposed_ + 1);
  }
  /// The number that the nodes agreed on; 0: none yet.
  std::uint64_t ask(const Owner& owner) {
    auto& waiter = waiting_[owner];
    waiter.asking = true;
    waiter.free = 0;
    return waiter.ticket;
  }
  /// It waits on, and these nodes were free for it. True: enough are by now.
  bool wait(const Owner& owner, std::uint64_t ticket, NodeSet free, std::uint64_t attempt) {
    auto& waiter = waiting_[owner];
    waiter.ticket = ticket;
    waiter.free |= free;
    waiter.asking = false;
    waiter.attempt = attempt;
    waiter.heard = 0;
    waiter.late = false;
    return enough(waiter.free);
  }
  /// A node says that it is this one's turn. True: so do enough of them.
  bool turn(const Owner& owner, std::size_t node) {
    if (const auto it = waiting_.find(owner); it != waiting_.end()) {
      it->second.free |= bit(node);
      return !it->second.asking && enough(it->second.free);
    }
    if (others_.size() > kMostOthers) others_.clear();
    const auto said = others_[owner] |= bit(node);
    if (!enough(said)) return false;
    others_.erase(owner);
    return true;
  }
  /// What was published before a majority could tell it reached nobody. True: look again, as some of them were late.
  bool listens(const Owner& owner, std::uint64_t attempt, std::size_t node, bool late) {
    const auto it = waiting_.find(owner);
    if (it == waiting_.end() || it->second.attempt != attempt) return false;
    auto& waiter = it->second;
    if ((waiter.heard & bit(node)) != 0) return false;
    waiter.heard |= bit(node);
    waiter.late = waiter.late || late;
    return waiter.late && std::popcount(waiter.heard) == static_cast<int>(majority_);
  }
  void forget(const Owner& owner) { waiting_.erase(owner); }

 private:
  static constexpr std::size_t kMostOthers = 1000;
  struct Waiter {
    std::uint64_t ticket = 0;
    NodeSet free = 0;
    bool asking = false;
    std::uint64_t attempt = 0;  // with which it began to wait
    NodeSet heard = 0;
    bool late = false;
  };
  [[nodiscard]] bool enough(NodeSet nodes) const {
    return std::popcount(nodes) >= static_cast<int>(majority_);
  }

  std::size_t majority_;
  std::unordered_map<Owner, Waiter> waiting_;
  std::unordered_map<Owner, NodeSet> others_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t last_proposed_ = 0;
};

}  // namespace interlock::redis
