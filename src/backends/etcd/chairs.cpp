#include "backends/etcd/chairs.hpp"

namespace interlock::etcd {

std::size_t Chairs::take() {
  if (returned_.empty()) return next_++;
  return returned_.extract(returned_.begin()).value();
}

std::string Chairs::of(const Owner& owner) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = taken_.try_emplace(owner);
    if (fresh) it->second = take();
    number = it->second;
  }
  return client_ + "." + std::to_string(number);
}

void Chairs::change(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  taken_[owner] = next_++;
}

void Chairs::free(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = taken_.find(owner);
  if (it == taken_.end()) return;
  returned_.insert(it->second);
  taken_.erase(it);
}

bool Chairs::has(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  return taken_.contains(owner);
}

}  // namespace interlock::etcd
