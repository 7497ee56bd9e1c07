// Something that may take its time, on a thread of its own, so that keys and signals are heard meanwhile.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "descriptor.hpp"

namespace cli {

/// One task at a time. All but the task itself is for one thread.
class Aside {
 public:
  Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  /// Waits for the task; see end().
  ~Aside();

  /// Not while one is under way.
  void start(std::function<void()> task);
  /// From start() until finish() has seen its end.
  [[nodiscard]] bool busy() const { return busy_; }
  /// Can be read when it has ended.
  [[nodiscard]] int fd() const { return done_.fd(); }
  /// True: the task has ended. Throws what it threw.
  bool finish();
  /// Waits until the task has ended, or this descriptor can be read. True: it has ended, see finish().
  [[nodiscard]] bool wait(int until) const;

  /// How to leave: with this status. A task that does not end within a moment would hold us up for as
  /// long as a store may take to answer, so then the process ends here and now.
  [[nodiscard]] int end(int status);

 private:
  void work();

  Bell done_;
  bool busy_ = false;
  std::exception_ptr failure_;  // the thread's while busy_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace cli
