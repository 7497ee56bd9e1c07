#include "interlock/std_lock.hpp"

namespace interlock::detail {

void ThreadLeases::put(Lease lease) {
  const std::lock_guard lock(mutex_);
  leases_.emplace(std::this_thread::get_id(), std::move(lease));
}

bool ThreadLeases::put(Attempt attempt) {
  if (!attempt) return false;
  put(*std::move(attempt));
  return true;
}

void ThreadLeases::drop() noexcept {
  Lease lease;  // released outside of the lock
  const std::lock_guard lock(mutex_);
  const auto end = leases_.upper_bound(std::this_thread::get_id());
  if (end == leases_.begin()) return;
  const auto newest = std::prev(end);
  if (newest->first != std::this_thread::get_id()) return;
  lease = std::move(newest->second);
  leases_.erase(newest);
}

}  // namespace interlock::detail
