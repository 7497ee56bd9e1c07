// The owners of one client that wait, and the processes that they wait for.
#pragma once

#include <poll.h>

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "backends/file/process.hpp"
#include "interlock/claim.hpp"

namespace interlock::file {

/// So that the end of a process that stands in somebody's way is noticed at once: the kernel tells
/// it through a descriptor of the process. Thread-safe; `watch` and `ended` are for one thread.
class Waiters {
 public:
  /// This owner waits, for the end of these. True if there is something new to watch.
  bool put(const Owner& owner, std::vector<Process> in_the_way, TimePoint now);
  void forget(const Owner& owner);
  [[nodiscard]] std::vector<Owner> all() const;

  /// Appends what to poll; `rings` gets those who wait for a process that has already ended.
  /// Owners that have not been heard of since `oldest` are forgotten.
  void watch(TimePoint oldest, std::vector<pollfd>& polled, std::vector<Owner>& rings);
  /// This descriptor became readable: `rings` gets those who wait for its process.
  void ended(int fd, std::vector<Owner>& rings);

 private:
  struct Waiter {
    std::vector<Process> in_the_way;
    TimePoint seen;
  };
  struct Watch {
    bool opened = false;
    FileDescriptor fd;  // empty again when the process has ended
    std::set<Owner> owners;
  };
  void leave(const Owner& owner, const std::vector<Process>& in_the_way);

  mutable std::mutex mutex_;
  std::map<Owner, Waiter> waiters_;
  std::map<Process, Watch> watches_;
};

}  // namespace interlock::file
