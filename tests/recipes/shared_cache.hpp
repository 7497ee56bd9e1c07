// A cache that several clients share, as processes share Redis; it fails when it is told to.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "interlock/single_flight.hpp"

namespace interlock::recipes {

class SharedCache {
 public:
  /// Called before each look and each put; may throw, or wait.
  std::function<void()> before_get{};
  std::function<void()> before_put{};

  Cache functions() {
    return {.get = [this](const std::string& key) { return get(key); },
            .put = [this](const std::string& key, const std::string& value) { put(key, value); },
            .remove = [this](const std::string& key) { remove(key); }};
  }

  std::optional<std::string> get(const std::string& key) {
    if (before_get) before_get();
    const std::lock_guard lock(mutex_);
    const auto it = values_.find(key);
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  }
  void put(const std::string& key, const std::string& value) {
    if (before_put) before_put();
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

}  // namespace interlock::recipes
