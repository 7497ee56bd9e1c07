#include "backends/etcd/sightings.hpp"

namespace interlock::etcd {

namespace {

// A key nobody looked at for so long is likely gone. If not, it is seen for the first time again.
constexpr Duration kStale = std::chrono::hours(1);
constexpr Duration kBetweenTidying = std::chrono::minutes(1);

}  // namespace

TimePoint Sightings::see(const std::string& key, std::int64_t revision, std::string_view value,
                         TimePoint now) {
  const auto hash = std::hash<std::string_view>()(value);
  const std::lock_guard lock(mutex_);
  tidy(now);
  auto& sighting = seen_[key];
  if (revision != sighting.revision || hash != sighting.value)
    sighting = {.revision = revision, .value = hash, .first = now, .last = now};
  sighting.last = now;
  return sighting.first;
}

void Sightings::see_again(const std::string& key, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (const auto it = seen_.find(key); it != seen_.end()) it->second.last = now;
}

void Sightings::tidy(TimePoint now) {
  if (now < tidy_at_) return;
  tidy_at_ = now + kBetweenTidying;
  std::erase_if(seen_, [&](const auto& item) { return item.second.last + kStale < now; });
}

}  // namespace interlock::etcd
