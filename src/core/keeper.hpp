// The one background thread of a client. It watches every deadline and starts every renewal, and so
// it never waits for anything but time: no store call on it may block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "interlock/clock.hpp"

namespace interlock::core {

class Keeper {
 public:
  /// Something that is due at a time. A task is in the heap at most once.
  class Task {
   public:
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;
    /// On the keeper's thread, with none of its locks held. Not in the heap any more. If it ends with an
    /// exception, it is due again soon.
    virtual void due(TimePoint now) = 0;

   private:
    friend class Keeper;
    static constexpr std::size_t kNowhere = ~std::size_t{0};
    std::size_t index_ = kNowhere;
    TimePoint at_{};
    std::uint64_t turn_ = 0;  // among tasks of one time: who came first

    [[nodiscard]] bool before(const Task& other) const noexcept {
      return at_ != other.at_ ? at_ < other.at_ : turn_ < other.turn_;
    }
  };

  explicit Keeper(std::shared_ptr<Clock> clock) : clock_(std::move(clock)), signal_(*clock_) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { stop(); }

  /// Starts the thread, unless it runs. Throws Error (unreachable) if none can be had: call it before anything
  /// that has to be watched is under way.
  void start();
  /// Nothing is due any more, from now on.
  void stop();

  /// Makes it due at `at`, instead of whenever it was before. TimePoint::max(): never. Tasks of one
  /// time are due in the order in which they came. The keeper
  /// shares the task until then.
  void schedule(const std::shared_ptr<Task>& task, TimePoint at);
  /// It may be running at this moment, all the same.
  void cancel(Task& task);

  /// All that is scheduled at this moment.
  [[nodiscard]] std::vector<std::shared_ptr<Task>> tasks();

  [[nodiscard]] bool on_its_thread() const noexcept {
    return thread_.get_id() == std::this_thread::get_id();
  }

 private:
  void run();
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);
  void place(std::size_t index, std::shared_ptr<Task> task);
  std::shared_ptr<Task> take(std::size_t index);

  std::shared_ptr<Clock> clock_;
  Signal signal_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Task>> running_;  // their time has come; only the thread changes it
  std::vector<std::shared_ptr<Task>> heap_;     // the earliest first; each task knows its index
  TimePoint sleeps_until_ = TimePoint::min();
  TimePoint woken_for_ = TimePoint::min();
  std::uint64_t last_turn_ = 0;
  bool stop_ = false;
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace interlock::core
