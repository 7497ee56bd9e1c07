#include "backends/etcd/watcher.hpp"

#include <algorithm>

namespace interlock::etcd {

namespace {

// A watch that ends younger than this wakes nobody: the next one might end as soon, and so on.
constexpr Duration kYoung = std::chrono::seconds(1);

}  // namespace

void Watcher::watch(const Owner& owner, Target target) {
  const std::lock_guard lock(mutex_);
  if (const auto it = watches_.find(owner); it != watches_.end()) {
    if (it->second.target.same(target)) return;
    drop(it);
  }
  if (!stream_) {
    stream_ = rpc_.watch([this](const wire::WatchResponse& response) { told(response); },
                         [this] { ended(); });
  }
  // From now on, and not from when it was seen: etcd tells of the past only ten times a second.
  wire::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(target.range.begin);
  create.set_range_end(target.range.end);
  if (!target.writes) create.add_filters(wire::WatchCreateRequest::NOPUT);
  create.set_watch_id(++last_id_);
  owners_[last_id_] = owner;
  watches_[owner] = {.id = last_id_, .target = std::move(target), .since = BootClock::now()};
  stream_->send(std::move(request));
}

void Watcher::unwatch(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  if (const auto it = watches_.find(owner); it != watches_.end()) drop(it);
}

bool Watcher::watches(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  return watches_.contains(owner);
}

void Watcher::drop(std::unordered_map<Owner, Watch>::iterator it) {
  if (stream_) {
    wire::WatchRequest request;
    request.mutable_cancel_request()->set_watch_id(it->second.id);
    stream_->send(std::move(request));
  }
  owners_.erase(it->second.id);
  watches_.erase(it);
}

void Watcher::told(const wire::WatchResponse& response) {
  Owner owner;
  bool wake = false;
  std::optional<Target> check;
  {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(response.watch_id());
    if (found == owners_.end()) return;
    owner = found->second;
    const auto it = watches_.find(owner);
    if (response.created() && response.header().revision() != it->second.target.seen)
      check = it->second.target;
    const bool deleted =
        std::any_of(response.events().begin(), response.events().end(),
                    [](const auto& event) { return event.type() == wire::Event::DELETE; });
    wake = deleted || (response.canceled() && BootClock::now() > it->second.since + kYoung);
    if (deleted || response.canceled()) drop(it);
  }
  for (const auto& event : response.events()) {
    if (event.type() == wire::Event::PUT) tell_.written(event.kv());
  }
  if (wake) tell_.wake(owner);
  if (check && !wake) tell_.check(owner, *check);
}

void Watcher::ended() {
  std::vector<Owner> awake;
  {
    const std::lock_guard lock(mutex_);
    const auto now = BootClock::now();
    for (const auto& [owner, watch] : watches_) {
      if (now > watch.since + kYoung) awake.push_back(owner);
    }
    watches_.clear();
    owners_.clear();
    stream_.reset();
  }
  for (const auto& owner : awake) tell_.wake(owner);
}

}  // namespace interlock::etcd
