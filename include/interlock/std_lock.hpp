// The std spelling (lock, unlock) needs a place to keep leases for the threads that locked.
#pragma once

#include <map>
#include <mutex>
#include <thread>

#include "interlock/attempt.hpp"

namespace interlock::detail {

/// Leases by thread. Copying a lock object copies no leases.
class ThreadLeases {
 public:
  ThreadLeases() = default;
  ThreadLeases(const ThreadLeases&) noexcept {}
  ThreadLeases& operator=(const ThreadLeases&) noexcept { return *this; }
  ~ThreadLeases() = default;

  void put(Lease lease);
  bool put(Attempt attempt);
  /// Releases the calling thread's newest lease, as its destructor would.
  void drop() noexcept;

 private:
  std::mutex mutex_;
  std::multimap<std::thread::id, Lease> leases_;
};

}  // namespace interlock::detail
