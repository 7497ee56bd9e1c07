// How a call that acquires on a Redlock goes: one owner asks all nodes, and a majority decides.
//
//     stage    | event                                       | next     | steps
//     ---------+---------------------------------------------+----------+-----------------------------------------
//     begun    | begin                                       | first    | ask all nodes (phase one)
//     first    | a majority granted, and knows the fence     | granted  | answer granted
//     first    | a majority granted                          | second   | ask those to confirm (phase two)
//     first    | a majority is there, and may queue          | waits    | yield on nodes that granted or have
//              |                                             |          | another number, listen, answer queued
//     first    | a majority is there, and may not queue      | over     | undo, answer busy
//     first    | a majority can't be had without nodes that  | mending  | mend
//              | lost their data, for the first time         |          |
//     first    | a majority can't be had                     | over     | undo, answer unknown, or lost
//     mending  | mended                                      | first    | ask all nodes, with the next number
//     mending  | mended, but released or asked for anew      | over     | answer unknown
//     second   | a majority confirmed                        | granted  | answer granted
//     second   | a majority can't be had                     | over     | undo, answer unknown
//     second,  | a late answer of phase one: granted         |          | tell the node to confirm
//     granted  |                                             |          |
//     waits    | a late answer of phase one: granted, or     |          | tell the node to yield
//              | queued with another number                  |          |
//
// Undo is a release of what this call's rounds took, on every node, as those that did not answer may do it later. A
// claim that takes over from another one is never undone: that would end the hold.
//
// Phase two counts only nodes whose answer phase one counted, and that still have that very hold. Why: "Why its fences
// rise" in docs/guarantees.md.
//
// A plain state machine: no lock, no thread, no socket, no clock.
#pragma once

#include "backends/redis/redlock_votes.hpp"
#include "backends/redis/redlock_waiters.hpp"

namespace interlock::redis {

class RedlockAcquisition {
 public:
  /// The first one, and after nodes were mended.
  static constexpr std::uint64_t kMostRounds = 2;

  /// Its rounds have the numbers after `attempt`: larger than those of all earlier calls of the client, and smaller
  /// than those of later ones.
  RedlockAcquisition(const RedlockNodes& nodes, RedlockWaiters& waiters, ClaimPtr claim, bool queue,
                     std::uint64_t attempt);

  /// A round. `clock`: the client's, in microseconds; it only proposes a number in line.
  void begin(std::uint64_t clock, Steps& steps);
  /// Its owner was released or asked for anew meanwhile: no other round.
  void refuse(Steps& steps);
  /// What a node said to phase one of the round `attempt`.
  void first(std::uint64_t attempt, std::size_t node, Vote vote, Steps& steps);
  /// What a node said to phase two.
  void second(std::size_t node, Vote vote, Steps& steps);

 private:
  enum class Stage : std::uint8_t { begun, first, mending, second, granted, waits, over };

  void decide(Steps& steps);
  [[nodiscard]] std::size_t awake() const;
  void begin_second(Steps& steps);
  void confirm(Steps::Way way, std::size_t node, Steps& steps) const;
  void confirm_late(std::size_t node, Steps& steps) const;
  void grant(Steps& steps);
  void drop_predecessor(Steps& steps) const;
  void begin_waiting(Steps& steps);
  void settle_in(std::size_t node, Steps& steps) const;
  [[nodiscard]] Answer queued_answer() const;
  void give_up(Answer answer, Steps& steps);

  [[nodiscard]] std::size_t majority() const { return nodes_.majority(); }
  [[nodiscard]] Message message(Message::Kind kind) const {
    return {.kind = kind, .claim = claim_, .queue = queue_, .ticket = ticket_, .attempt = attempt_};
  }

  const RedlockNodes& nodes_;
  RedlockWaiters& waiters_;
  ClaimPtr claim_;
  bool queue_;
  Stage stage_ = Stage::begun;
  int round_ = 0;
  std::uint64_t attempt_;
  bool mended_ = false;
  Votes votes_;
  Votes confirmed_{0};
  std::size_t unconfirmed_ = 0;
  std::vector<std::uint64_t> fences_;
  std::uint64_t ticket_ = 0;
};

}  // namespace interlock::redis
