#include "backends/redis/redlock_inspection.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "backends/redis/inspection.hpp"
#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

namespace {

constexpr Duration kGrace = std::chrono::milliseconds(10);

}  // namespace

void RedlockInspection::start(RedlockGroup& group, const Query& query, Call call, Report report) {
  const auto self = std::make_shared<RedlockInspection>(group, call.deadline, std::move(report));
  group.keeper().schedule(self, call.deadline);
  for (std::size_t node = 0; node < group.size(); ++node) {
    std::make_shared<Inspection>(
        group.node(node), group.names(), query, call,
        [self, node](Snapshot snapshot) { self->told(node, std::move(snapshot)); })
        ->start();
  }
}

RedlockInspection::RedlockInspection(RedlockGroup& group, TimePoint deadline, Report report)
    : group_(group),
      started_(BootClock::now()),
      deadline_(deadline),
      report_(std::move(report)),
      snapshots_(group.size()),
      left_(group.size()) {}

void RedlockInspection::told(std::size_t node, Snapshot snapshot) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  if (!snapshot.why) ++good_;
  snapshots_[node] = std::move(snapshot);
  if (--left_ > 0) {
    // The others get as long again as the majority took.
    if (good_ != group_.majority()) return;
    const auto now = BootClock::now();
    group_.keeper().schedule(shared_from_this(),
                             std::min(deadline_, now + std::max(kGrace, now - started_)));
    return;
  }
  group_.keeper().cancel(*this);
  finish(lock);
}

void RedlockInspection::due(TimePoint) {
  std::unique_lock lock(mutex_);
  if (!over_) finish(lock);
}

void RedlockInspection::finish(std::unique_lock<std::mutex>& lock) {
  over_ = true;
  std::vector<const Snapshot*> good;
  std::string problems;
  std::vector<Error> refusals;
  for (std::size_t node = 0; node < snapshots_.size(); ++node) {
    const auto& snapshot = snapshots_[node];
    if (snapshot && !snapshot->why) good.push_back(&*snapshot);
    if (snapshot && snapshot->why && !snapshot->why->retryable())
      refusals.push_back(*snapshot->why);
    problems += (node == 0 ? "" : "; ") + group_.node(node).name() + ": " +
                (!snapshot       ? "no answer in time"
                 : snapshot->why ? snapshot->why->message()
                                 : "answered");
  }
  Snapshot result;
  if (good.size() >= group_.majority()) {
    result.resources = merge(good, group_.majority());
  } else if (auto refused = refusal_of(refusals, group_.size())) {
    result.why = std::move(refused);
  } else {
    const bool for_good = group_.size() - refusals.size() < group_.majority();
    result.why = Error(for_good ? refusals.front().errc() : Errc::unreachable,
                       "no majority of the nodes answered (" + problems + ")");
  }
  lock.unlock();
  report_(std::move(result));
}

namespace {

struct Sighting {
  Entry entry;  ///< as the first node shows it
  std::vector<Duration> remaining;
  std::map<std::uint64_t, int> fences;
  std::size_t places = 0;  ///< the sum of its places in the queues

  void add(const Entry& seen, std::size_t place) {
    if (remaining.empty()) entry = seen;
    entry.age = std::max(entry.age, seen.age);
    remaining.push_back(seen.remaining);
    ++fences[seen.fence.value];
    places += place;
  }
  [[nodiscard]] Entry settled(std::size_t majority) {
    std::sort(remaining.rbegin(), remaining.rend());
    entry.remaining = remaining[majority - 1];  // so long a majority holds it
    entry.fence.value =
        std::max_element(fences.begin(), fences.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    return entry;
  }
};

using Sightings = std::map<Owner, Sighting>;

void add(Sightings& sightings, const std::vector<Entry>& entries) {
  for (std::size_t place = 0; place < entries.size(); ++place)
    sightings[entries[place].owner].add(entries[place], place);
}

}  // namespace

std::vector<ResourceState> merge(const std::vector<const Snapshot*>& snapshots,
                                 std::size_t majority) {
  struct Both {
    Sightings holders;
    Sightings waiters;
  };
  std::map<std::string, Both> all;
  for (const auto* snapshot : snapshots) {
    for (const auto& state : snapshot->resources) {
      auto& both = all[state.resource];
      add(both.holders, state.holders);
      add(both.waiters, state.waiters);
    }
  }
  std::vector<ResourceState> states;
  for (auto& [resource, both] : all) {
    ResourceState state{.resource = resource};
    for (auto& [owner, sighting] : both.holders) {
      if (sighting.remaining.size() >= majority)
        state.holders.push_back(sighting.settled(majority));
    }
    std::sort(state.holders.begin(), state.holders.end(), [](const Entry& a, const Entry& b) {
      return a.age != b.age ? a.age > b.age : a.owner < b.owner;
    });
    std::vector<std::pair<double, Entry>> line;
    for (auto& [owner, sighting] : both.waiters) {
      if (sighting.remaining.size() < majority) continue;
      const auto place =
          static_cast<double>(sighting.places) / static_cast<double>(sighting.remaining.size());
      line.emplace_back(place, sighting.settled(majority));
    }
    std::sort(line.begin(), line.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second.age > b.second.age;
    });
    for (auto& [place, entry] : line) state.waiters.push_back(std::move(entry));
    if (!state.holders.empty() || !state.waiters.empty()) states.push_back(std::move(state));
  }
  return states;
}

}  // namespace interlock::redis
