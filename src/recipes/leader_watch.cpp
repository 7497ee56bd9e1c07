#include "recipes/leader_watch.hpp"

#include "core/quiet_thread.hpp"

namespace interlock::recipes {

namespace {

bool same(const std::optional<Leader>& a, const std::optional<Leader>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->term == b->term && a->host == b->host && a->pid == b->pid;
}

}  // namespace

std::optional<Leader> look_at_leader(const Client& client, const std::string& resource) {
  for (const auto& state : client.inspect({.resources = {resource}}).resources) {
    for (const auto& holder : state.holders) {
      using std::chrono::system_clock;
      return Leader{.label = holder.who.label,
                    .host = holder.who.host,
                    .pid = holder.who.pid,
                    .since = system_clock::now() -
                             std::chrono::duration_cast<system_clock::duration>(holder.age),
                    .term = holder.fence};
    }
  }
  return std::nullopt;
}

void LeaderWatch::add(Changed changed) {
  const std::lock_guard lock(mutex_);
  onlookers_.push_back({.changed = std::move(changed)});
  hurried_ = true;
  if (!thread_.joinable()) thread_ = core::quiet_thread([this] { run(); });
  changed_.notify_all();
}

void LeaderWatch::hurry() {
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  changed_.notify_all();
}

void LeaderWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LeaderWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    hurried_ = false;
    lock.unlock();
    try {
      tell(look_at_leader(client_, resource_));
    } catch (const std::exception&) {
      // Nobody knows who leads, so nobody is told anything.
    }
    lock.lock();
    changed_.wait_for(lock, every_, [this] { return stop_ || hurried_; });
  }
}

void LeaderWatch::tell(const std::optional<Leader>& found) {
  std::vector<Changed> whom;
  {
    const std::lock_guard lock(mutex_);
    for (auto& onlooker : onlookers_) {
      if (stop_ || (onlooker.told && same(onlooker.last, found))) continue;
      onlooker.told = true;
      onlooker.last = found;
      whom.push_back(onlooker.changed);
    }
  }
  for (auto& changed : whom) post_([changed = std::move(changed), found] { changed(found); });
}

}  // namespace interlock::recipes
