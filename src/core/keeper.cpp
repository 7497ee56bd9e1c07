#include "core/keeper.hpp"

#include <algorithm>
#include <utility>

#include "core/contain.hpp"
#include "core/quiet_thread.hpp"

namespace interlock::core {

namespace {

// A task that the system refused something is due again after this.
constexpr auto kAgain = std::chrono::milliseconds(100);

}  // namespace

void Keeper::start() {
  if (started_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (thread_.joinable() || stop_) return;
  thread_ = quiet_thread([this] { run(); });
  started_.store(true, std::memory_order_release);
}

void Keeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  signal_.set();
  if (thread_.joinable() && !on_its_thread()) thread_.join();
}

void Keeper::schedule(const std::shared_ptr<Task>& task, TimePoint at) {
  start();
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (task->index_ != Task::kNowhere) {
      if (at == TimePoint::max()) {
        (void)take(task->index_);
        return;
      }
      const bool earlier = at < task->at_;
      if (at == task->at_) return;  // keeps its turn
      task->at_ = at;
      task->turn_ = ++last_turn_;
      earlier ? sift_up(task->index_) : sift_down(task->index_);
    } else {
      if (at == TimePoint::max()) return;
      task->at_ = at;
      task->turn_ = ++last_turn_;
      heap_.push_back(task);
      task->index_ = heap_.size() - 1;
      sift_up(task->index_);
    }
    // The thread is woken only if it would sleep too long. A task that is taken out again leaves
    // the thread asleep until then: locks that are taken and freed quickly wake nobody.
    wake = at < sleeps_until_;
    if (wake) {
      sleeps_until_ = TimePoint::min();
      woken_for_ = at;
    }
  }
  if (wake) signal_.set();
}

void Keeper::cancel(Task& task) {
  std::shared_ptr<Task> taken;  // let go of it outside of the lock
  const std::lock_guard lock(mutex_);
  if (task.index_ != Task::kNowhere) taken = take(task.index_);
}

std::vector<std::shared_ptr<Keeper::Task>> Keeper::tasks() {
  const std::lock_guard lock(mutex_);
  auto all = heap_;
  all.insert(all.end(), running_.begin(), running_.end());
  return all;
}

void Keeper::run() {
  std::vector<std::shared_ptr<Task>> done;
  while (true) {
    TimePoint next = TimePoint::max();
    const auto now = clock_->now();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      const bool room = contain([&] {
        while (!heap_.empty() && heap_.front()->at_ <= now) {
          running_.emplace_back();  // first, as this may fail, and a task must not get lost
          running_.back() = take(0);
        }
      });
      // What it was woken for may be over by now, and the next of its kind here in a moment.
      if (woken_for_ > now) next = woken_for_;
      if (!heap_.empty()) next = std::min(next, heap_.front()->at_);
      if (!room) next = now + kAgain;
      sleeps_until_ = running_.empty() ? next : TimePoint::min();
    }
    if (running_.empty()) {
      signal_.wait_until(next);
      continue;
    }
    for (const auto& task : running_) {
      if (!contain([&] { task->due(now); })) (void)contain([&] { schedule(task, now + kAgain); });
    }
    {
      const std::lock_guard lock(mutex_);
      done.swap(running_);
    }
    done.clear();  // outside of the lock
  }
}

void Keeper::place(std::size_t index, std::shared_ptr<Task> task) {
  task->index_ = index;
  heap_[index] = std::move(task);
}

void Keeper::sift_up(std::size_t index) {
  auto task = std::move(heap_[index]);
  while (index > 0) {
    const auto parent = (index - 1) / 2;
    if (!task->before(*heap_[parent])) break;
    place(index, std::move(heap_[parent]));
    index = parent;
  }
  place(index, std::move(task));
}

void Keeper::sift_down(std::size_t index) {
  auto task = std::move(heap_[index]);
  while (true) {
    auto child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->before(*heap_[child])) ++child;
    if (!heap_[child]->before(*task)) break;
    place(index, std::move(heap_[child]));
    index = child;
  }
  place(index, std::move(task));
}

std::shared_ptr<Keeper::Task> Keeper::take(std::size_t index) {
  auto taken = std::move(heap_[index]);
  taken->index_ = Task::kNowhere;
  auto last = std::move(heap_.back());
  heap_.pop_back();
  if (index < heap_.size()) {
    const bool earlier = last->before(*taken);
    place(index, std::move(last));
    earlier ? sift_up(index) : sift_down(index);
  }
  return taken;
}

}  // namespace interlock::core
