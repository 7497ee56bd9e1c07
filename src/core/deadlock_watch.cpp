#include "core/deadlock_watch.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/pursuit.hpp"
#include "core/younger.hpp"

namespace interlock::core {

namespace {

constexpr Duration kApart = std::chrono::milliseconds(500);  // the two looks that it takes
constexpr Duration kLongest = std::chrono::seconds(30);
/// How long each one who is younger is given to end a circle.
constexpr Duration kPatience = std::chrono::seconds(3);
/// From one look to the next, whoever is due; and so many times what the last one took.
constexpr Duration kBreath = std::chrono::milliseconds(100);
constexpr int kBreaths = 5;

bool any_actor_in_the_way(const Snapshot& snapshot) {
  const auto has_one = [](const Entry& entry) { return !entry.who.actor.empty(); };
  return std::any_of(
      snapshot.resources.begin(), snapshot.resources.end(), [&](const ResourceState& state) {
        return std::any_of(state.holders.begin(), state.holders.end(), has_one) ||
               std::count_if(state.waiters.begin(), state.waiters.end(), has_one) > 1;
      });
}

Owner name_of(const Deadlock& circle) {
  return std::min_element(
             circle.members.begin(), circle.members.end(),
             [](const auto& one, const auto& other) { return one.waiter < other.waiter; })
      ->waiter;
}

}  // namespace

template <class Step>
void DeadlockWatch::think(Engine& engine, Step step) {
  engine.think([self = weak_from_this(), step = std::move(step)] {
    const auto watch = self.lock();
    const auto owner = watch ? watch->engine_.lock() : nullptr;
    if (owner) step(*watch, *owner);
  });
}

void DeadlockWatch::add(const std::shared_ptr<Pursuit>& waiter) {
  const auto engine = engine_.lock();
  if (!engine) return;
  const auto now = engine->now();
  const auto at = now + kApart;
  std::vector<std::string> resources;
  for (const auto& part : waiter->claim().parts) resources.push_back(part.resource);
  const std::lock_guard lock(mutex_);
  waiters_[waiter->claim().owner] = {
      .pursuit = waiter, .resources = std::move(resources), .next_look = at, .pause = kApart};
  if (now < looking_until_ || next_ <= at) return;
  next_ = at;
  engine->keeper().schedule(shared_from_this(), at);
}

void DeadlockWatch::due(TimePoint) {
  const auto engine = engine_.lock();
  if (!engine) return;
  think(*engine, [](DeadlockWatch& watch, Engine& owner) { watch.go_on(owner); });
}

void DeadlockWatch::go_on(Engine& engine) {
  const auto now = engine.now();
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    if (now < looking_until_) return;
    std::erase_if(waiters_, [](const auto& item) { return item.second.pursuit.expired(); });
    next_ = TimePoint::max();
    for (auto& [owner, waiter] : waiters_) {
      if (waiter.next_look <= now) {
        names.insert(waiter.resources.begin(), waiter.resources.end());
        waiter.pause = std::min(waiter.pause * 2, kLongest);
        waiter.next_look = now + waiter.pause;
      }
      next_ = std::min(next_, waiter.next_look);
    }
    if (names.empty()) {
      if (next_ != TimePoint::max()) engine.keeper().schedule(shared_from_this(), next_);
      return;
    }
  }
  look(engine, {.resources = {names.begin(), names.end()}}, false);
}

void DeadlockWatch::look(Engine& engine, const Query& query, bool whole) {
  Look look{.began = engine.now(), .whole = whole};
  const auto deadline = look.began + engine.traits().call_timeout;
  {
    const std::lock_guard lock(mutex_);
    look.number = ++looks_;
    looking_until_ = deadline;
  }
  engine.keeper().schedule(shared_from_this(), deadline);  // if there is no answer
  engine.backend().inspect(
      query, {.deadline = deadline}, [self = weak_from_this(), look](Snapshot snapshot) {
        const OnStoreThread here;
        const auto watch = self.lock();
        const auto owner = watch ? watch->engine_.lock() : nullptr;
        if (!owner) return;
        watch->think(*owner, [look, picture = std::move(snapshot)](DeadlockWatch& its, Engine& of) {
          its.seen(of, look, picture);
        });
      });
}

void DeadlockWatch::seen(Engine& engine, const Look& look, const Snapshot& snapshot) {
  {
    const std::lock_guard lock(mutex_);
    if (look.number != looks_) return;  // it came too late
  }
  // Without actors among those who are in the way there is no circle.
  if (!snapshot.why && !look.whole && any_actor_in_the_way(snapshot))
    return this->look(engine, {}, true);
  if (!snapshot.why && look.whole) judge(look, engine.now(), find_deadlocks(snapshot));
  const auto now = engine.now();
  const auto rest = std::max(kBreath, kBreaths * (now - look.began));
  {
    const std::lock_guard lock(mutex_);
    looking_until_ = now + rest;
  }
  engine.keeper().schedule(shared_from_this(), now + rest);
}

void DeadlockWatch::judge(const Look& look, TimePoint now, std::vector<Deadlock> circles) {
  std::vector<Ended> ended;
  {
    const std::lock_guard lock(mutex_);
    std::map<Owner, Suspicion> known;
    for (auto& circle : circles) {
      const auto name = name_of(circle);
      const auto before = suspicions_.find(name);
      const bool again = before != suspicions_.end() && before->second.circle.same_as(circle);
      Suspicion suspicion{.circle = std::move(circle), .since = again ? before->second.since : now};
      if (suspect(look, suspicion, ended)) suspicion.since = now;
      known.emplace(name, std::move(suspicion));
    }
    suspicions_ = std::move(known);
  }
  for (auto& [pursuit, why] : ended) pursuit->fail(std::move(why));
}

// The youngest of ours ends it when those who are younger still had their time. True: it does.
bool DeadlockWatch::suspect(const Look& look, Suspicion& suspicion, std::vector<Ended>& ended) {
  std::vector<const Deadlock::Member*> youngest_first;
  for (const auto& member : suspicion.circle.members) youngest_first.push_back(&member);
  std::sort(youngest_first.begin(), youngest_first.end(),
            [](const auto* one, const auto* other) { return younger(*one, *other); });
  auto at = suspicion.since + kApart;
  for (const auto* member : youngest_first) {
    const auto ours = waiters_.find(member->waiter);
    auto pursuit = ours == waiters_.end() ? nullptr : ours->second.pursuit.lock();
    if (!pursuit) {
      at += kPatience;
      continue;
    }
    if (look.began < at) {
      ours->second.next_look = std::min(ours->second.next_look, at);
      ours->second.pause = kApart;
      next_ = std::min(next_, at);
      return false;
    }
    ended.emplace_back(std::move(pursuit),
                       Error(Errc::deadlock, suspicion.circle.describe() +
                                                 "; release what is held and try again, or take "
                                                 "them all at once (in C++: MultiLock; with the "
                                                 "command: interlock run ONE --also OTHER)"));
    waiters_.erase(ours);
    return true;
  }
  return false;
}

}  // namespace interlock::core
