// Keeps those who ask for the same resource, one after the other and without waiting for the answer,
// in that order: etcd serves the requests of one connection in any.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace interlock::etcd {

/// Thread-safe.
class Lane {
 public:
  /// Goes now, or when those before it have left.
  void enter(const std::string& resource, std::function<void()> go) {
    {
      const std::lock_guard lock(mutex_);
      const auto [it, free] = waiting_.try_emplace(resource);
      if (!free) return it->second.push_back(std::move(go));
    }
    go();
  }
  /// Whoever entered has arrived.
  void leave(const std::string& resource) {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex_);
      const auto it = waiting_.find(resource);
      if (it->second.empty()) {
        waiting_.erase(it);
        return;
      }
      next = std::move(it->second.front());
      it->second.pop_front();
    }
    next();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::deque<std::function<void()>>> waiting_;
};

}  // namespace interlock::etcd
