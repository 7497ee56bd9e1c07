#include "core/courier.hpp"

namespace interlock::core {

void Courier::end(bool drop) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    drops_ = drops_ || drop;
    if (drops_) posted_.clear();
  }
  changed_.notify_one();
  if (thread_.joinable() && !on_its_thread()) thread_.join();
}

void Courier::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (drops_) return;
    posted_.push_back(std::move(callback));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
}

void Courier::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !posted_.empty(); });
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
