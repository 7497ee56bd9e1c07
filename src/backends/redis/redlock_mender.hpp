// Nodes of a Redlock that lost their data, and how they come to count again.
//
// A new node knows nothing of the leases and fences it was part of. Every one of them is known to
// some node of any majority of the others, so
//
//   1. a majority that counts is asked how long the last of its holds lasts, and the new node waits
//      that long: whatever was granted with its lost vote has ended by then, for its holder, too;
//   2. then a majority that counts is asked for its counters, and the new node goes on from the
//      largest: all fences that were given with its lost vote are below.
//
// If a majority is new, there is nobody to ask: at the very beginning, or after a loss that no
// majority survived. They begin anew, with numbers from the clock, after the longest time that any
// of them knows of.
#pragma once

#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/redis/redlock_group.hpp"

namespace interlock::redis {

class RedlockMender {
 public:
  explicit RedlockMender(RedlockGroup& group) : group_(group) {}

  /// Does what can be done now. `then` is called, from any thread, when that is over; at once if
  /// it is not yet time to look again.
  void mend(std::function<void()> then);

 private:
  struct State {
    bool ready = false;
    std::uint64_t count = 0;
    Duration holds{};                ///< until its last hold ends
    std::optional<Duration> wait{};  ///< new: until it may be repaired
    std::uint64_t clock = 0;         ///< in microseconds
    std::string born{};
  };
  using States = std::vector<std::optional<State>>;
  using Nodes = std::vector<std::size_t>;
  using Then = std::function<void(const States&)>;

  /// The words of `mend`.
  [[nodiscard]] Words words(std::size_t node,
                            std::initializer_list<std::string_view> arguments) const;
  /// Asks these nodes, and hands on what those said that answered.
  void ask(const Nodes& nodes, const std::function<Words(std::size_t)>& words, Then then);
  void look(Then then);
  void looked(const States& states);
  void waited(const States& states);
  void repair(const Nodes& nodes, const States& states);
  /// Look again after this time.
  void finish(Duration pause);

  RedlockGroup& group_;
  std::mutex mutex_;
  bool running_ = false;
  TimePoint not_before_{};
  std::vector<std::function<void()>> then_;
};

}  // namespace interlock::redis
