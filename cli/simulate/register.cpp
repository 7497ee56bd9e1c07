#include "simulate/register.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>

namespace cli::simulation {

namespace {

std::int64_t nanoseconds(interlock::TimePoint at) { return at.time_since_epoch().count(); }

std::string resource_name(std::uint32_t resource) { return "resource " + std::to_string(resource); }

}  // namespace

std::string worker_name(std::uint32_t worker, std::uint32_t threads) {
  if (threads == 0) return "worker " + std::to_string(worker);
  return "worker " + std::to_string(worker / threads) + "." + std::to_string(worker % threads);
}

void Register::prepare(Ledger& ledger) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&ledger.mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

Register::Pause::Pause(Register& of) : of_(of) {
  // In short sleeps: whoever is woken from a long one may be in a stopped process, and would wake
  // nobody else. And somebody else's kill may hit a process in here.
  int result = ETIMEDOUT;
  while (result == ETIMEDOUT) {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 5'000'000;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    // Not by the other clock (clocklock): the thread sanitizer does not know that one.
    result = ::pthread_mutex_timedlock(&of_.ledger_.mutex, &until);
  }
  if (result == EOWNERDEAD) ::pthread_mutex_consistent(&of_.ledger_.mutex);
}

Register::Pause::~Pause() { ::pthread_mutex_unlock(&of_.ledger_.mutex); }

void Register::Pause::forget(std::uint32_t worker) {
  for (auto& mark : of_.workers_[worker]) mark = {};
}

bool Register::conflict(const Mark& mark, const Entrance& entrance) const {
  if (!mark.used || (!mark.exclusive && !entrance.exclusive)) return false;
  return mark.resource == entrance.resource ||
         (table_ && (mark.resource == 0 || entrance.resource == 0));
}

std::int64_t Register::evicted_at(const interlock::Owner& owner) const {
  for (const auto& eviction : ledger_.evicted) {
    if (eviction.at != 0 && eviction.owner == owner) return eviction.at;
  }
  return std::numeric_limits<std::int64_t>::max();
}

bool Register::enter(std::uint32_t worker, const std::vector<Entrance>& entrances,
                     const Standing& lease) {
  const Pause pause(*this);
  const auto now = nanoseconds(interlock::BootClock::now());
  const auto stale = std::find_if(entrances.begin(), entrances.end(), [&](const Entrance& each) {
    return each.exclusive && each.fence && *each.fence <= resources_[each.resource].fence;
  });
  // Looked at after the clock and the fences: if it is valid now, it was so then.
  const auto valid_until = nanoseconds(lease.valid_until());
  const bool valid = lease.valid() && evicted_at(lease.owner) > now;
  if (stale != entrances.end()) {
    ++ledger_.refused;
    if (valid) {
      tell(name(worker) + " enters " + resource_name(stale->resource) +
           " with a valid lease and fence " + std::to_string(*stale->fence) + ", but " +
           std::to_string(resources_[stale->resource].fence) + " was seen before");
    }
    return false;
  }
  auto& own = workers_[worker];
  for (const auto& entrance : entrances) {
    for (std::uint32_t other = 0; other < workers_.size(); ++other) {
      if (other == worker) continue;
      for (auto& mark : workers_[other]) {
        if (!conflict(mark, entrance)) continue;
        if (valid) {
          intrude(worker, other, mark, now);
        } else {
          ++ledger_.outlived;
        }
      }
    }
    auto* const place =
        std::find_if(own.begin(), own.end(), [](const Mark& mark) { return !mark.used; });
    if (place == own.end()) {
      tell(name(worker) + " enters more than it can");
      return false;
    }
    auto& guarded = resources_[entrance.resource];
    *place = {.used = true,
              .exclusive = entrance.exclusive,
              .fenced = entrance.fence.has_value(),
              .resource = entrance.resource,
              .owner = lease.owner,
              .fence = entrance.fence.value_or(0),
              .read = guarded.number,
              .valid_until = valid_until,
              .intruded_at = 0,
              .intruder = 0};
    if (entrance.exclusive && entrance.fence) guarded.fence = *entrance.fence;
    ++ledger_.entries;
  }
  return true;
}

void Register::intrude(std::uint32_t intruder, std::uint32_t holder, Mark& mark, std::int64_t now) {
  if (evicted_at(mark.owner) <= now) {
    ++ledger_.outlived;
  } else if (mark.valid_until > now) {
    tell_overlap(intruder, holder, mark);
  } else if (mark.intruded_at == 0) {
    // Only the holder knows whether it was renewed since: it says so when it leaves.
    mark.intruded_at = now;
    mark.intruder = intruder;
  }
}

void Register::leave(std::uint32_t worker, std::uint32_t resource, const Standing& lease) {
  const Pause pause(*this);
  for (auto& mark : workers_[worker]) {
    if (!mark.used || mark.resource != resource) continue;
    const bool valid =
        lease.valid() && evicted_at(mark.owner) == std::numeric_limits<std::int64_t>::max();
    if (mark.intruded_at != 0) {
      if (nanoseconds(lease.valid_until()) > mark.intruded_at &&
          evicted_at(mark.owner) > mark.intruded_at) {
        tell_overlap(mark.intruder, worker, mark);
      } else {
        ++ledger_.outlived;
      }
    }
    if (mark.exclusive) write(worker, mark, valid);
    mark = {};
  }
}

void Register::write(std::uint32_t worker, const Mark& mark, bool valid) {
  auto& guarded = resources_[mark.resource];
  if (mark.fenced && mark.fence < guarded.fence) {
    ++ledger_.refused;
    if (valid) {
      tell(name(worker) + " has a valid lease of " + resource_name(mark.resource) + " with fence " +
           std::to_string(mark.fence) + ", but " + std::to_string(guarded.fence) +
           " was seen meanwhile");
    }
    return;
  }
  // Without fences, nothing stops those whose lease has ended.
  if (!mark.fenced && !valid) return;
  if (guarded.number != mark.read) {
    tell(name(worker) + " read " + std::to_string(mark.read) + " from " +
         resource_name(mark.resource) + ", but finds " + std::to_string(guarded.number) +
         ": an update would be lost");
  }
  guarded.number = mark.read + 1;
  ++ledger_.writes;
}

void Register::lost_early(std::uint32_t worker, std::uint32_t resource,
                          const interlock::Owner& owner) {
  const Pause pause(*this);
  if (evicted_at(owner) != std::numeric_limits<std::int64_t>::max()) return;
  tell(name(worker) + " lost its lease of " + resource_name(resource) +
       " before its deadline, though nobody broke it");
}

void Register::evicting(const interlock::Owner& owner) {
  const Pause pause(*this);
  ledger_.evicted[ledger_.evictions++ % ledger_.evicted.size()] = {
      owner, nanoseconds(interlock::BootClock::now())};
}

void Register::violated(const std::string& what) {
  const Pause pause(*this);
  tell(what);
}

void Register::tell_overlap(std::uint32_t intruder, std::uint32_t holder, const Mark& mark) {
  tell(name(intruder) + " enters while " + name(holder) + " is in " + resource_name(mark.resource) +
       (mark.exclusive ? "" : " (shared)") + ", and both leases are valid");
}

void Register::tell(const std::string& what) {
  const auto at = ledger_.violations++;
  if (at >= ledger_.told.size()) return;
  auto& text = ledger_.told[at].text;
  const auto size = std::min(what.size(), text.size() - 1);
  std::memcpy(text.data(), what.data(), size);
  text[size] = '\0';
}

std::vector<std::string> Register::violations() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < std::min<std::size_t>(ledger_.violations, ledger_.told.size()); ++i) {
    all.emplace_back(ledger_.told[i].text.data());
  }
  return all;
}

}  // namespace cli::simulation
