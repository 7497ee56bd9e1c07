// How a release on a Redlock goes.
//
//     stage  | event                                          | next | steps
//     -------+------------------------------------------------+------+-------------------------------------------
//     asking | a majority held it                             | over | answer granted
//     asking | a majority did it, and no majority can have    | over | answer queued, or lost
//            | held it                                        |      |
//     asking | all answered or failed: a majority may have    | over | answer granted
//            | held it, and one of them can't say so          |      |
//     asking | all answered or failed, and no majority did it | over | answer unknown
//     any    | a node failed to do it                         |      | insist: a majority may have released it,
//            |                                                |      | and it would be in everybody's way there
//
// A plain state machine: no lock, no thread, no socket, no clock.
#pragma once

#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

class RedlockRelease {
 public:
  RedlockRelease(const RedlockNodes& nodes, ClaimPtr claim)
      : nodes_(nodes), claim_(std::move(claim)), votes_(nodes.size()) {}

  void begin(Steps& steps) const;
  void heard(std::size_t node, Vote vote, Steps& steps);

 private:
  [[nodiscard]] std::optional<Answer> decide() const;
  [[nodiscard]] Message message() const {
    return {.kind = Message::Kind::release, .claim = claim_};
  }

  const RedlockNodes& nodes_;
  ClaimPtr claim_;
  bool over_ = false;
  Votes votes_;
};

}  // namespace interlock::redis
