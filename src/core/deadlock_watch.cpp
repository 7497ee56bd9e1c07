#include "core/deadlock_watch.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/pursuit.hpp"
#include "core/who.hpp"

namespace interlock::core {

namespace {

constexpr Duration kFirst = std::chrono::milliseconds(500);
constexpr Duration kLongest = std::chrono::seconds(30);

}  // namespace

void DeadlockWatch::add(const std::shared_ptr<Pursuit>& waiter) {
  const auto engine = engine_.lock();
  if (!engine) return;
  const auto at = engine->now() + kFirst;
  std::vector<std::string> resources;
  for (const auto& part : waiter->claim().parts) resources.push_back(part.resource);
  const std::lock_guard lock(mutex_);
  waiters_[waiter->claim().owner] = {.pursuit = waiter,
                                     .resources = std::move(resources),
                                     .next_look = at,
                                     .pause = kFirst,
                                     .suspected = {}};
  if (looking_ || next_ <= at) return;
  next_ = at;
  engine->keeper().schedule(shared_from_this(), at);
}

void DeadlockWatch::due(TimePoint now) {
  const auto engine = engine_.lock();
  if (!engine) return;
  std::optional<std::pair<Snapshot, bool>> answer;
  {
    const std::lock_guard lock(mutex_);
    answer = std::exchange(answer_, std::nullopt);
    if (!answer && looking_) return;
  }
  if (answer) return seen(*engine, answer->first, answer->second);
  go_on(*engine, now);
}

void DeadlockWatch::go_on(Engine& engine, TimePoint now) {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiters_, [](const auto& item) { return item.second.pursuit.expired(); });
    next_ = TimePoint::max();
    for (auto& [owner, waiter] : waiters_) {
      if (waiter.next_look <= now) {
        names.insert(waiter.resources.begin(), waiter.resources.end());
        if (!waiter.suspected) waiter.pause = std::min(waiter.pause * 2, kLongest);
        waiter.next_look = now + waiter.pause;
      }
      next_ = std::min(next_, waiter.next_look);
    }
    looking_ = !names.empty();
    if (!looking_ && next_ != TimePoint::max()) engine.keeper().schedule(shared_from_this(), next_);
  }
  if (!names.empty()) look(engine, {.resources = {names.begin(), names.end()}}, false);
}

void DeadlockWatch::look(Engine& engine, const Query& query, bool whole) {
  engine.backend().inspect(query, {.deadline = engine.now() + engine.traits().call_timeout},
                           [self = weak_from_this(), whole](Snapshot snapshot) {
                             const OnStoreThread here;
                             const auto watch = self.lock();
                             const auto owner = watch ? watch->engine_.lock() : nullptr;
                             if (!owner) return;
                             {
                               const std::lock_guard lock(watch->mutex_);
                               watch->answer_.emplace(std::move(snapshot), whole);
                             }
                             owner->keeper().schedule(watch, TimePoint{});
                           });
}

void DeadlockWatch::seen(Engine& engine, const Snapshot& snapshot, bool whole) {
  if (!snapshot.why && !whole) {
    // Without actors among those who are in the way there is no circle.
    const bool actors = std::any_of(
        snapshot.resources.begin(), snapshot.resources.end(), [](const ResourceState& state) {
          const auto has_one = [](const Entry& entry) { return !actor_of(entry.who).empty(); };
          return std::any_of(state.holders.begin(), state.holders.end(), has_one) ||
                 std::count_if(state.waiters.begin(), state.waiters.end(), has_one) > 1;
        });
    if (actors) return look(engine, {}, true);
  }
  const auto now = engine.now();
  if (!snapshot.why) judge(now, whole ? snapshot : Snapshot{});
  go_on(engine, now);
}

void DeadlockWatch::judge(TimePoint now, const Snapshot& snapshot) {
  auto circles = find_deadlocks(snapshot);
  std::vector<std::pair<std::shared_ptr<Pursuit>, Error>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [owner, waiter] : waiters_) {
      const auto before = std::exchange(waiter.suspected, std::nullopt);
      const auto found = std::find_if(circles.begin(), circles.end(), [&](const Deadlock& circle) {
        return circle.members[circle.youngest].waiter == owner;
      });
      if (found == circles.end()) continue;
      if (before && before->same_as(*found)) {
        if (auto pursuit = waiter.pursuit.lock()) {
          ended.emplace_back(
              std::move(pursuit),
              Error(Errc::deadlock, found->describe() + "; release what is held and try again, or "
                                                        "take them all at once (MultiLock)"));
        }
        waiter.pursuit.reset();
        continue;
      }
      waiter.suspected = *found;
      waiter.pause = kFirst;
      waiter.next_look = now + kFirst;
    }
  }
  for (auto& [pursuit, why] : ended) pursuit->fail(std::move(why));
}

}  // namespace interlock::core
