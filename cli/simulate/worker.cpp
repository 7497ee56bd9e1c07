#include "simulate/worker.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "interlock/multi_lock.hpp"

namespace cli::simulation {

namespace {

using interlock::BootClock;
using interlock::Duration;
using interlock::Errc;
using interlock::Lease;
using interlock::Outcome;
using interlock::Wait;
using std::chrono::milliseconds;

Standing standing(const Lease& lease) {
  return {.owner = lease.owner(),
          .valid = [&lease] { return lease.state() == interlock::LeaseState::held; },
          .valid_until = [&lease] { return lease.valid_until(); }};
}

/// Inside of what it entered, until it leaves: also when an Error flies by.
class Inside {
 public:
  Inside(Register& watch, std::uint32_t worker, const std::vector<Entrance>& entrances,
         Standing lease)
      : watch_(watch), worker_(worker), entrances_(entrances), lease_(std::move(lease)) {
    entered_ = watch_.enter(worker_, entrances_, lease_);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    for (const auto& entrance : entrances_) leave(entrance.resource);
  }
  [[nodiscard]] bool entered() const { return entered_; }
  /// Leaving twice is fine.
  void leave(std::uint32_t resource) const {
    if (entered_) watch_.leave(worker_, resource, lease_);
  }

 private:
  Register& watch_;
  std::uint32_t worker_;
  const std::vector<Entrance>& entrances_;
  Standing lease_;
  bool entered_ = false;
};

}  // namespace

Worker::Worker(Arena& arena, std::uint32_t number, std::uint32_t life, interlock::Client client,
               std::stop_token stop)
    : arena_(arena),
      number_(number),
      client_(std::move(client)),
      stop_(std::move(stop)),
      random_(arena.plan().seed + number + std::uint64_t{life} * 1'000'003),
      tally_(arena.tally(number)) {}

void Worker::run() {
  while (!stop_.stop_requested()) {
    try {
      turn();
    } catch (const interlock::Error& error) {
      // Of a lease that was lost, and of a store that did not answer in time, only the count matters.
      if (error.errc() == Errc::lost) {
        ++tally_.lost;
      } else if (error.errc() == Errc::unreachable) {
        ++tally_.unanswered;
        sleep(milliseconds(50));
      } else {
        arena_.fail(error);
        return;
      }
    }
  }
}

void Worker::turn() {
  if (arena_.plan().kind == Kind::stress && !arena_.plan().no_lock && chance(0.02)) {
    return break_something();
  }
  const auto wanted = wish();
  if (arena_.plan().no_lock) {
    take_without_lock(wanted);
  } else {
    take(wanted);
  }
}

Worker::Wish Worker::wish() {
  const auto& plan = arena_.plan();
  Wish wish;
  wish.options.ttl = plan.ttl;
  wish.options.label = "interlock simulate";
  wish.wait = Wait::forever(stop_);
  wish.hold = up_to(plan.hold);
  switch (plan.kind) {
    case Kind::time:
      wish.role = below(client_.traits().shared ? 3 : 1);
      wish.exclusive = wish.role != 1;
      wish.resources = some(wish.role == 2 ? std::min(plan.resources, 3U) : 1);
      return wish;
    case Kind::speed:
      wish.resources = some(1);
      return wish;
    case Kind::escalation:
      if (number_ == 0) {
        wish.role = 1;
        wish.resources = {0};
        sleep(up_to(4 * std::max<Duration>(plan.hold, milliseconds(1))));  // the rows' turn
      } else {
        wish.resources = {static_cast<std::uint32_t>(1 + below(plan.resources - 1))};
      }
      return wish;
    case Kind::stress:
      break;
  }
  return stress_wish();
}

Worker::Wish Worker::stress_wish() {
  const auto& plan = arena_.plan();
  Wish wish;
  wish.options.ttl = plan.ttl;
  wish.options.label = "interlock simulate";
  wish.options.priority = static_cast<std::int32_t>(below(3)) - 1;
  wish.hold = up_to(plan.hold);
  wish.wait = Wait::forever(stop_);
  wish.resources = some(chance(0.5) ? 1 : 2 + below(2));
  if (wish.resources.size() > 1) {
    wish.role = 2;
    wish.partly = chance(0.4);
  } else if (client_.traits().shared && chance(0.3)) {
    wish.role = 1;
    wish.exclusive = false;
  }
  if (chance(0.15)) wish.wait = Wait::once();
  if (chance(0.15)) wish.wait = Wait::for_(up_to(milliseconds(20)), stop_);
  if (chance(0.02)) {  // is lost, for want of a renewal, while it is held
    wish.options.ttl = std::min<Duration>(plan.ttl, milliseconds(60));
    wish.options.renew = false;
    wish.hold = wish.options.ttl / 2 + up_to(wish.options.ttl);
  }
  return wish;
}

void Worker::take(const Wish& wish) {
  std::vector<interlock::Part> parts;
  for (const auto resource : wish.resources) {
    parts.push_back(wish.exclusive ? interlock::exclusive(arena_.name(resource))
                                   : interlock::shared(arena_.name(resource)));
  }
  auto wait = wish.wait;
  std::stop_source cancel;
  std::stop_callback on_stop(stop_, [&cancel] { cancel.request_stop(); });
  std::jthread canceller;
  const bool cancelled = arena_.plan().kind == Kind::stress && chance(0.1);
  if (cancelled) {
    wait.stop = cancel.get_token();
    canceller = std::jthread([cancel, after = up_to(milliseconds(10))]() mutable {
      std::this_thread::sleep_for(after);
      cancel.request_stop();
    });
  }

  begin(Event::waiting, wish.resources.front());
  const auto asked = BootClock::now();
  auto attempt = client_.acquire(std::move(parts), wish.options, wait);
  const auto waited = BootClock::now() - asked;
  if (!attempt) {
    if (attempt.outcome() == Outcome::cancelled && !stop_.stop_requested()) {
      ++tally_.cancelled;
      tally_.now.kind = Event::cancelled;
    }
    end();
    if (attempt.outcome() == Outcome::busy) ++tally_.busy;
    if (attempt.outcome() == Outcome::timed_out) ++tally_.timed_out;
    if (attempt.outcome() == Outcome::failed) throw interlock::Error(attempt.error());
    if (attempt.outcome() == Outcome::busy) std::this_thread::yield();
    return;
  }
  tally_.waits.at(wish.role).add(waited);
  end();
  hold(wish, *attempt);
}

void Worker::hold(const Wish& wish, Lease& lease) {
  const auto lanes = wish.resources.size();
  std::vector<Entrance> entrances;
  for (const auto resource : wish.resources) {
    entrances.push_back({.resource = resource, .exclusive = wish.exclusive, .fence = {}});
    if (wish.exclusive && client_.traits().fences) {
      entrances.back().fence = lease.fence(arena_.name(resource)).value;
    }
  }
  begin(Event::held, wish.resources.front());
  const auto began = BootClock::now();
  {
    const Inside inside(arena_.watch(), number_, entrances, standing(lease));
    if (inside.entered()) {
      sleep(wish.partly ? wish.hold / 2 : wish.hold);
      if (wish.partly) {
        const auto first = wish.resources.front();
        inside.leave(first);
        lease.release({arena_.name(first)});
        ++tally_.partial;
        end(0, lanes);
        sleep(wish.hold / 2);
      }
    }
  }
  for (std::size_t lane = tally_.now.lane; lane < lanes; ++lane) {
    tally_.now.resource = wish.resources[lane];
    end(lane, lanes);
  }
  tally_.holds.add(BootClock::now() - began);
  const auto releasing = BootClock::now();
  if (lease.release() == interlock::LeaseState::lost) {
    ++tally_.lost;
    mark(Event::lost, wish.resources.front());
    if (lease.valid_until() > BootClock::now()) {
      arena_.watch().lost_early(number_, wish.resources.front(), lease.owner());
    }
  } else {
    tally_.releases.add(BootClock::now() - releasing);
  }
}

void Worker::take_without_lock(const Wish& wish) {
  const Standing always{.owner = {.high = 1, .low = number_ + 1},
                        .valid = [] { return true; },
                        .valid_until = [] { return interlock::TimePoint::max(); }};
  std::vector<Entrance> entrances;
  for (const auto resource : wish.resources) {
    entrances.push_back({.resource = resource, .exclusive = wish.exclusive, .fence = {}});
  }
  tally_.waits.at(wish.role).add({});
  begin(Event::held, wish.resources.front());
  {
    const Inside inside(arena_.watch(), number_, entrances, always);
    sleep(wish.hold);
  }
  end();
}

void Worker::break_something() {
  const auto found =
      client_.inspect({.resources = {arena_.name(some(1).front())}, .prefix = {}}).resources;
  if (found.empty() || found.front().holders.empty()) return;
  const auto& holders = found.front().holders;
  const auto& holder = holders[below(holders.size())];
  arena_.watch().evicting(holder.owner);
  if (client_.evict(found.front().resource, holder.owner)) ++tally_.evicted;
}

std::vector<std::uint32_t> Worker::some(std::size_t count) {
  count = std::min<std::size_t>(count, arena_.plan().resources);
  std::vector<std::uint32_t> chosen;
  while (chosen.size() < count) {
    const auto one = static_cast<std::uint32_t>(below(arena_.plan().resources));
    if (std::find(chosen.begin(), chosen.end(), one) == chosen.end()) chosen.push_back(one);
  }
  return chosen;
}

Duration Worker::up_to(Duration most) {
  return Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()) + 1)));
}

// A killed one leaves `now` behind, so it has to be whole at any time.
void Worker::begin(Event::Kind kind, std::uint32_t resource) {
  tally_.now = {
      .begin = arena_.now(), .end = {}, .kind = kind, .lane = 0, .lanes = 1, .resource = resource};
}

void Worker::end(std::size_t lane, std::size_t lanes) {
  auto event = tally_.now;
  event.end = arena_.now();
  event.lane = static_cast<std::uint8_t>(lane);
  event.lanes = static_cast<std::uint8_t>(lanes);
  if (lane + 1 == lanes) {
    tally_.now = {};
  } else {
    tally_.now.lane = static_cast<std::uint8_t>(lane + 1);
  }
  arena_.add(number_, event);
}

void Worker::mark(Event::Kind kind, std::uint32_t resource) {
  const auto now = arena_.now();
  arena_.add(number_,
             {.begin = now, .end = now, .kind = kind, .lane = 0, .lanes = 1, .resource = resource});
}

// Not beyond the end of the simulation.
void Worker::sleep(Duration duration) const {
  if (duration <= Duration::zero()) return;
  std::mutex mutex;
  std::condition_variable_any over;
  std::unique_lock lock(mutex);
  over.wait_for(lock, stop_, duration, [] { return false; });
}

}  // namespace cli::simulation
