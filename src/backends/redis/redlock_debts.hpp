// What a node of a Redlock still has to be told: what takes something away, and did not reach it. Left on one node
// after the other, that would be in everybody's way.
//
//     event                           | next                    | send
//     --------------------------------+-------------------------+------------------------------------
//     failed: the node did not do it  | it is owed; due in a    |
//                                     | pause, unless it is so  |
//     due, and some are owed          |                         | one of them, to see if it answers
//     done: the node did one          | none is owed            | all others, at once
//     any: the time of one is over    | that one is not owed    |
//
// A plain machine: no lock, no thread, no socket, no clock.
#pragma once

#include "backends/redis/redlock_message.hpp"

namespace interlock::redis {

class RedlockDebts {
 public:
  struct Debt {
    std::uint64_t call = 0;  ///< whose work this is
    Message message{};
    TimePoint until{};
    bool until_closed = true;  ///< see Steps::Send
  };
  static constexpr Duration kPause = std::chrono::milliseconds(200);

  void failed(Debt debt, TimePoint now);
  /// What to send now.
  std::vector<Debt> done();
  std::optional<Debt> due(TimePoint now);
  [[nodiscard]] TimePoint next_due() const noexcept { return due_; }
  /// Drops what fits, and says how many that were.
  template <class Fits>
  std::size_t drop(Fits fits) {
    return std::erase_if(debts_, fits);
  }

 private:
  std::vector<Debt> debts_;
  TimePoint due_ = TimePoint::max();
};

}  // namespace interlock::redis
