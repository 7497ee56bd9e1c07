#include "backends/file/waiters.hpp"

#include <algorithm>

namespace interlock::file {

bool Waiters::put(const Owner& owner, std::vector<Process> in_the_way, TimePoint now) {
  std::sort(in_the_way.begin(), in_the_way.end());
  in_the_way.erase(std::unique(in_the_way.begin(), in_the_way.end()), in_the_way.end());
  const std::lock_guard lock(mutex_);
  Waiter& waiter = waiters_[owner];
  waiter.seen = now;
  if (waiter.in_the_way == in_the_way) return false;
  bool fresh = false;
  for (const auto& process : in_the_way) {
    Watch& watch = watches_[process];
    watch.owners.insert(owner);
    fresh = fresh || !watch.opened;
  }
  std::vector<Process> left;
  std::set_difference(waiter.in_the_way.begin(), waiter.in_the_way.end(), in_the_way.begin(),
                      in_the_way.end(), std::back_inserter(left));
  leave(owner, left);
  waiter.in_the_way = std::move(in_the_way);
  return fresh;
}

void Waiters::forget(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto it = waiters_.find(owner);
  if (it == waiters_.end()) return;
  leave(owner, it->second.in_the_way);
  waiters_.erase(it);
}

std::vector<Owner> Waiters::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Owner> owners;
  for (const auto& [owner, waiter] : waiters_) owners.push_back(owner);
  return owners;
}

// A watch that nobody needs any more is closed by the thread that polls it, not here.
void Waiters::leave(const Owner& owner, const std::vector<Process>& in_the_way) {
  for (const auto& process : in_the_way) {
    if (const auto it = watches_.find(process); it != watches_.end())
      it->second.owners.erase(owner);
  }
}

void Waiters::watch(TimePoint oldest, std::vector<pollfd>& polled, std::vector<Owner>& rings) {
  const std::lock_guard lock(mutex_);
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    if (it->second.seen >= oldest) {
      ++it;
      continue;
    }
    leave(it->first, it->second.in_the_way);
    it = waiters_.erase(it);
  }
  std::erase_if(watches_, [](const auto& entry) { return entry.second.owners.empty(); });
  for (auto& [process, watch] : watches_) {
    if (!watch.opened) {
      watch.opened = true;
      watch.fd = watch_process(process);
      // Asked after it was opened: it may have ended, and another one have its number.
      if (has_ended(process)) {
        watch.fd = FileDescriptor();
        rings.insert(rings.end(), watch.owners.begin(), watch.owners.end());
      }
    }
    if (watch.fd) polled.push_back({.fd = watch.fd.get(), .events = POLLIN, .revents = 0});
  }
}

void Waiters::ended(int fd, std::vector<Owner>& rings) {
  const std::lock_guard lock(mutex_);
  for (auto& [process, watch] : watches_) {
    if (watch.fd.get() != fd) continue;
    // It stays in the list, so that those who go on waiting don't watch it again.
    watch.fd = FileDescriptor();
    rings.insert(rings.end(), watch.owners.begin(), watch.owners.end());
    return;
  }
}

}  // namespace interlock::file
