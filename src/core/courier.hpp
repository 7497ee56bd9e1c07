// Runs callbacks on threads of its own, which start when they are needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace interlock::core {

class Courier {
 public:
  /// With one thread, callbacks run in order. With more, one that takes its time holds up no other,
  /// until that many do.
  explicit Courier(std::size_t most_threads) : most_threads_(most_threads) {
    threads_.reserve(most_threads);  // a thread that runs already needs its place
  }
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  /// Runs what was posted, then ends.
  ~Courier() { end(false); }

  /// Starts the first thread, unless there is one. Throws Error (unreachable) if none can be had.
  void start();
  /// Throws Error (unreachable), and posts nothing, if there is no thread and none can be had.
  void post(std::function<void()> callback);
  /// Waits for what runs at this moment, and drops the rest and all that comes.
  void stop() { end(true); }
  [[nodiscard]] bool on_its_thread();

 private:
  void end(bool drop);
  void run();
  [[nodiscard]] bool is_one_of_them() const;

  const std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
  std::size_t idle_ = 0;
  bool stop_ = false;
  bool drops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace interlock::core
