// Waits that would never end: who waits for whom in a circle.
//
// Who takes all that he needs in one claim (MultiLock) can't deadlock with others who do. Claims made one
// after the other can: a worker holds `a` and waits for `b`, another holds `b` and waits for `a`, or is ahead
// in the line of `b` with a claim on both. All renew their leases and places, and so no TTL ends it.
//
// Interlock looks for such circles while it waits. It has to know which waits and holds belong to one
// who does one thing at a time: Options::actor or Options::identity say so, and with
// Deadlocks::by_thread the thread that blocks. About the others it assumes nothing, and so it never takes for a
// deadlock what is none. In a circle that is there at two looks, half a second apart, the one who
// came last gets an Error (deadlock) that names the circle, and the others go on as soon as it
// releases what it holds.
#pragma once

#include <string>
#include <vector>

#include "interlock/inspect.hpp"

namespace interlock {

/// A circle: each waits for the next, and the last one for the first.
struct Deadlock {
  struct Member {
    Who who{};
    Owner waiter{};          ///< its claim that waits
    std::string resource{};  ///< what it waits for
    Duration waited{};
    Owner blocker{};      ///< the next one's claim that is in the way
    bool queued = false;  ///< which waits as well, and is ahead in line; else it holds
  };
  std::vector<Member> members{};
  std::size_t youngest = 0;  ///< who came last, and gets the error

  /// "billing (host 12) waits for a, held by …", in one line.
  [[nodiscard]] std::string describe() const;
  /// The same claims are in each other's way. Claims are never reused: a circle that is there at two
  /// looks was there between them.
  [[nodiscard]] bool same_as(const Deadlock& other) const noexcept;
};

/// The circles in a picture of the whole store, as Client::inspect() gives it. One picture may be
/// blurred where a store is not read in one step; see same_as().
[[nodiscard]] std::vector<Deadlock> find_deadlocks(const Snapshot& snapshot);

}  // namespace interlock
