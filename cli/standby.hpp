// Holds the lock of a token in place of a process that does not renew it any more.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "interlock/lease.hpp"

namespace cli {

/// Adopts the lock in a thread of its own, as a store may take its time to answer, and renews it.
class Standby {
 public:
  enum class State {
    asking,
    held,
    lost,  ///< for good: it had ended, or the store refuses
  };

  Standby(std::string url, std::string token);
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  /// Releases the lock. Tries so once at least, and waits for the store.
  ~Standby();

  [[nodiscard]] State state() const { return state_; }

 private:
  void work();
  /// Returns when the lock is lost, or given back.
  void hold();
  void untie(interlock::Lease& lease);
  /// True: to end.
  bool pause(std::chrono::milliseconds time);

  std::string url_;
  std::string token_;
  std::atomic<State> state_ = State::asking;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace cli
