// Waits that would never end: who waits for whom in a circle.
//
// Who takes all that he needs in one claim (MultiLock) can't deadlock with others who do. Claims made one
// after the other can: a worker holds `a` and waits for `b`, another holds `b` and waits for `a`, or is ahead
// in the line of `b` with a claim on both. All renew their leases and places, and so no TTL ends it.
//
// Interlock looks for such circles while it waits. It has to know which waits and holds belong to one
// who does one thing at a time, an actor:
//
//   Options::actor        whoever has it, anywhere: a worker, a job, a request
//   Options::identity     the claims of one identity that one thread made, blocking; what its other
//                         threads do is their own affair. So it is with Locking
//   Deadlocks::by_thread  all that one thread claimed, blocking
//   none of these         nothing is assumed: it gets on by itself, and is never told
//
// Asynchronous claims block no thread, and so belong to nobody unless they name their actor. A lease
// counts for the thread that acquired it until it is released, whoever does that: if you hand on
// leases that have an identity, give them an actor of their own, or switch this off for the client.
//
// An actor is stuck while all it waits for is in the way of others who are stuck. A wait with a limit
// counts as any other, and so does a lease that is not renewed: it may be told of a deadlock that time
// would have ended.
//
// In a circle that is there at two looks, half a second apart, the one who came last gets an Error
// (deadlock) that names the circle, and the others go on as soon as it releases what it holds. If
// its client does not look (Deadlocks::off), it is the one who came before it, some seconds later.
#pragma once

#include <string>
#include <vector>

#include "interlock/inspect.hpp"

namespace interlock {

/// A circle: each waits for the next, and the last one for the first. Who waits longest comes first.
struct Deadlock {
  struct Member {
    Who who{};
    Owner waiter{};          ///< its claim that waits
    std::string resource{};  ///< what it waits for
    Duration waited{};
    Owner blocker{};      ///< the next one's claim that is in the way
    Who blocked_by{};     ///< whose that is: perhaps not the process by which the next one waits
    bool queued = false;  ///< which waits as well, and is ahead in line; else it holds
  };
  std::vector<Member> members{};
  std::size_t youngest = 0;  ///< who came last

  /// "billing (host 12) waits for a, held by …", in one line.
  [[nodiscard]] std::string describe() const;
  /// The same claims are in each other's way, in whatever order they are told. Claims are never
  /// reused: a circle that is there at two looks was there between them.
  [[nodiscard]] bool same_as(const Deadlock& other) const noexcept;
};

/// The circles in a picture of the whole store, as Client::inspect() gives it. One picture may be
/// blurred where a store is not read in one step; see same_as(). Takes time in proportion to the picture.
[[nodiscard]] std::vector<Deadlock> find_deadlocks(const Snapshot& snapshot);

}  // namespace interlock
