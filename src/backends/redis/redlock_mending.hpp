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
//
//     stage     | event: all that were asked have answered or failed    | next      | steps
//     ----------+-------------------------------------------------------+-----------+---------------------
//     resting   | mend, and it is time to look again                    | looking   | ask all to look
//     looking   | some are new, and a majority counts, or is new        | waiting   | ask the new to wait
//     waiting   | the wait of some is over                              | reading   | ask all to look
//     reading   | some are still new, and a majority counts, or is new  | repairing | ask those to repair
//     repairing | (the repaired count from now on)                      | resting   |
//     any       | anything else                                         | resting   |
//
// The counters have to be read after the wait was over, so they are asked for again. After one turn, it rests until
// there may be something to do.
//
// A plain state machine: no lock, no thread, no socket, no clock.
#pragma once

#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

class RedlockMending {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);  ///< for one answer

  explicit RedlockMending(const RedlockNodes& nodes) : nodes_(nodes), states_(nodes.size()) {}

  /// Begins if it rests and it is time. True: it is under way, and `resting` when it is over.
  bool mend(TimePoint now, Steps& steps);
  void heard(std::size_t node, const Vote& vote, TimePoint now, Steps& steps);
  [[nodiscard]] bool resting() const noexcept { return stage_ == Stage::resting; }

 private:
  enum class Stage : std::uint8_t { resting, looking, waiting, reading, repairing };
  using Nodes = std::vector<std::size_t>;
  struct Sides {
    Nodes ready, fresh;
  };

  void look(Stage stage, Steps& steps);
  void looked(TimePoint now, Steps& steps);
  void waited(TimePoint now, Steps& steps);
  void read(TimePoint now, Steps& steps);
  /// Asks this, and forgets what was said before.
  void ask(Stage stage, const Nodes& nodes, Message::Kind kind, std::uint64_t number, Steps& steps);
  void rest(TimePoint now, Duration pause);
  [[nodiscard]] Sides sides() const;

  const RedlockNodes& nodes_;
  Stage stage_ = Stage::resting;
  TimePoint not_before_{};
  NodeSet asked_ = 0;  ///< and neither answered nor failed yet
  std::vector<std::optional<NodeState>> states_;
  Nodes over_;  ///< whose wait is over
};

}  // namespace interlock::redis
