// Runs callbacks, in order, on a thread of its own that starts with the first of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace interlock::core {

class Courier {
 public:
  Courier() = default;
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  /// Runs what was posted, then ends.
  ~Courier() { end(false); }

  void post(std::function<void()> callback);
  /// Waits for what runs at this moment, and drops the rest and all that comes.
  void stop() { end(true); }
  [[nodiscard]] bool on_its_thread() const noexcept {
    return thread_.get_id() == std::this_thread::get_id();
  }

 private:
  void end(bool drop);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
  bool stop_ = false;
  bool drops_ = false;
  std::thread thread_;
};

}  // namespace interlock::core
