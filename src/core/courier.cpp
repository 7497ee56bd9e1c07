#include "core/courier.hpp"

#include <algorithm>

#include "core/quiet_thread.hpp"

namespace interlock::core {

void Courier::end(bool drop) {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    drops_ = drops_ || drop;
    if (drops_) posted_.clear();
    // One that ends the process from a callback can't wait for itself.
    if (!is_one_of_them()) threads.swap(threads_);
  }
  changed_.notify_all();
  for (auto& thread : threads) thread.join();
}

bool Courier::on_its_thread() {
  const std::lock_guard lock(mutex_);
  return is_one_of_them();
}

// With the mutex.
bool Courier::is_one_of_them() const {
  return std::any_of(threads_.begin(), threads_.end(), [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  });
}

void Courier::start() {
  const std::lock_guard lock(mutex_);
  if (threads_.empty() && !stop_) threads_.push_back(quiet_thread([this] { run(); }));
}

void Courier::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (drops_) return;
    if (!stop_ && posted_.size() >= idle_ && threads_.size() < most_threads_) {
      try {
        threads_.push_back(quiet_thread([this] { run(); }));
      } catch (const Error&) {
        if (threads_.empty()) throw;
      }
    }
    posted_.push_back(std::move(callback));
  }
  changed_.notify_one();
}

void Courier::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stop_ || !posted_.empty(); });
    --idle_;
    if (posted_.empty()) return;
    {
      auto callback = std::move(posted_.front());
      posted_.pop_front();
      lock.unlock();
      callback();
    }  // let go of what it held before taking the lock again
    lock.lock();
  }
}

}  // namespace interlock::core
