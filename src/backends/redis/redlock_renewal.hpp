// How a renewal on a Redlock goes.
//
//     stage     | event                                      | next      | steps
//     ----------+--------------------------------------------+-----------+----------------------------------------
//     asking    | a majority confirmed it                    | confirmed | answer granted; heal nodes that lost it
//     asking    | it is lost on so many that the others are  | over      | answer lost
//               | no majority                                |           |
//     asking    | no majority can confirm it any more        | over      | answer unknown
//     confirmed | a late answer: lost                        | confirmed | heal that node
//
// A node is healed in the same round in which a majority confirmed the lease, and in no other: so renewing never
// creates.
//
// A plain state machine: no lock, no thread, no socket, no clock.
#pragma once

#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

class RedlockRenewal {
 public:
  RedlockRenewal(const RedlockNodes& nodes, ClaimPtr claim)
      : nodes_(nodes), claim_(std::move(claim)), votes_(nodes.size()) {}

  void begin(Steps& steps) const;
  void heard(std::size_t node, Vote vote, Steps& steps);

 private:
  enum class Stage : std::uint8_t { asking, confirmed, over };

  void confirm(Steps& steps);
  void heal(std::size_t node, Steps& steps) const;

  const RedlockNodes& nodes_;
  ClaimPtr claim_;
  Stage stage_ = Stage::asking;
  Votes votes_;
  std::vector<std::uint64_t> fences_;
};

}  // namespace interlock::redis
