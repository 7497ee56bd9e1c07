// Each task is run by one worker at a time.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "interlock/client.hpp"

namespace interlock {

struct TaskOptions {
  /// When a worker was killed or cut off, its task can be claimed again after this. It is renewed
  /// while the worker is well, so a task may take any time.
  Duration ttl = std::chrono::seconds(30);
  /// Others see it as the worker's name.
  std::string label{};
  /// A task that is done stays claimed until this long after it was claimed, so that a worker that
  /// comes late (its clock is behind, its list is old) does not do it again. It stays so without this
  /// process, by a lease that nobody renews. Where the store can't do that (`Traits::detaches` is
  /// false: PostgreSQL's advisory locks), it stays only while a copy of the TaskQueue does, and its
  /// process: call linger() before you leave.
  Duration at_least_for{};
  /// lost() fires this much before anybody else could claim the task. At most a third of the TTL.
  Duration margin{};
};

/// Who has a task.
struct Worker {
  std::string label{};
  std::string host{};
  std::int64_t pid = 0;
  bool finished = false;  ///< it is done, and kept by at_least_for; the pid is 0 then
  std::chrono::system_clock::time_point since{};  ///< claimed or finished then; for people
  Duration remaining{};  ///< until the store drops the claim, unless it is renewed
};

/// A claimed task. Move-only. One thread at a time may use it, but lost() may be read from any.
class [[nodiscard]] Task {
 public:
  Task(Task&&) noexcept;
  Task& operator=(Task&&) noexcept;
  /// Gives it back as if it had never been claimed, unless done() was called.
  ~Task();

  [[nodiscard]] const std::string& id() const;
  /// Fires when the claim is lost: stop then, as another worker may begin.
  [[nodiscard]] std::stop_token lost() const;
  /// For what the task writes to; see fenced.hpp.
  [[nodiscard]] const Lease& lease() const;
  /// It is ours at this moment.
  explicit operator bool() const noexcept;

  /// The work is done: nobody gets the task before at_least_for has passed. `lost`: it was not ours any
  /// more, and somebody else may have been at it. Throws Error (unreachable) if the store can't be told.
  LeaseState done();
  /// The work is not done: any worker may claim the task at once.
  LeaseState give_back();

 private:
  friend class TaskQueue;
  struct Claimed;
  explicit Task(std::unique_ptr<Claimed> claimed) noexcept;
  std::unique_ptr<Claimed> claimed_;
};

/// A Task, or who has it:
///
///     if (auto task = queue.claim("42")) { work(task->lost()); task->done(); }
///     else if (auto other = task.worker()) { log(other->host); }
class [[nodiscard]] TaskAttempt {
 public:
  explicit TaskAttempt(Task task) : task_(std::move(task)) {}
  explicit TaskAttempt(std::optional<Worker> worker) : worker_(std::move(worker)) {}

  explicit operator bool() const noexcept { return task_.has_value(); }
  /// Only if there is one.
  Task& operator*() & { return task_.value(); }
  Task&& operator*() && { return std::move(task_.value()); }
  Task* operator->() { return &task_.value(); }
  /// Who has it; nothing if it was given back while we looked: claim again.
  [[nodiscard]] const std::optional<Worker>& worker() const noexcept { return worker_; }

 private:
  std::optional<Task> task_;
  std::optional<Worker> worker_;
};

/// Claims are locks named `task:{queue}:{id}`. Nothing here waits for a task: it is ours, or somebody
/// else's. What tasks there are, and which are done for good, is for your own store to know.
///
/// A cheap handle; copies are the same queue. Thread-safe.
class TaskQueue {
 public:
  /// Throws Error (invalid) for a name or an option that no store would take. The queue's name has no
  /// colon, so that no two queues have a task in common.
  TaskQueue(Client client, const std::string& queue, TaskOptions options = {});

  /// One shot. Throws Error (unreachable, …) if the store fails.
  TaskAttempt claim(const std::string& id) const;
  /// The first that is free, in the order given; nothing if all are taken. Workers with the same list
  /// get in each other's way least if each shuffles its own.
  std::optional<Task> claim_any(const std::vector<std::string>& ids) const;

  /// Claims the task and runs `f` with a std::stop_token that fires if the claim is lost (or with the
  /// Task&, or with nothing). False: somebody else has it, and `f` was not called. When `f` returns, the
  /// task is done(); when it throws, the task is given back and the exception passes through. Throws
  /// Error (lost) if the claim was lost meanwhile: another worker may have been at it, too.
  template <class F>
  bool run(const std::string& id, F&& f) const {
    auto task = claim(id);
    if (!task) return false;
    if constexpr (std::invocable<F&, std::stop_token>) {
      std::invoke(f, task->lost());
    } else if constexpr (std::invocable<F&, Task&>) {
      std::invoke(f, *task);
    } else {
      std::invoke(f);
    }
    finish(*task);
    return true;
  }

  /// Who has it; nothing if it can be claimed. Throws Error (unreachable).
  [[nodiscard]] std::optional<Worker> worker(const std::string& id) const;

  /// Waits until all that at_least_for keeps in this process has ended. At once where the store keeps
  /// it.
  void linger(const std::stop_token& stop = {}) const;

 private:
  static void finish(Task& task);

  class State;
  friend class Task;
  std::shared_ptr<State> state_;
};

}  // namespace interlock
