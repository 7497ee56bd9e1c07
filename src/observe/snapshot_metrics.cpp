#include <algorithm>

#include "interlock/metrics.hpp"
#include "observe/exposition.hpp"

namespace interlock {

namespace {

struct Figures {
  std::string_view lock{};
  std::size_t holders = 0;
  std::size_t waiters = 0;
  Duration oldest_hold{};
  Duration longest_wait{};
};

void count(const std::vector<Entry>& entries, std::size_t& number, Duration& longest) {
  for (const auto& entry : entries) {
    if (entry.ancestor) continue;  // it is there for something below, which counts
    ++number;
    longest = std::max(longest, entry.age);
  }
}

Figures figures(const ResourceState& state) {
  Figures of{.lock = state.resource};
  count(state.holders, of.holders, of.oldest_hold);
  count(state.waiters, of.waiters, of.longest_wait);
  return of;
}

}  // namespace

std::string to_metrics(const Snapshot& snapshot, const Traits& store, bool names) {
  std::vector<Figures> locks;
  Figures all;
  for (const auto& state : snapshot.resources) {
    const auto of = figures(state);
    if (of.holders + of.waiters == 0) continue;
    locks.push_back(of);
    all.holders += of.holders;
    all.waiters += of.waiters;
    all.oldest_hold = std::max(all.oldest_hold, of.oldest_hold);
    all.longest_wait = std::max(all.longest_wait, of.longest_wait);
  }
  const auto held =
      std::count_if(locks.begin(), locks.end(), [](const Figures& of) { return of.holders > 0; });

  observe::Exposition out;
  const auto total = [&](std::string_view name, std::string_view help, double value) {
    out.family(name, "gauge", help);
    out.sample({{"store", store.name}, {"node", store.where}}, value);
  };
  total("interlock_store_locks", "Names that are held.", static_cast<double>(held));
  total("interlock_store_holders", "Holders of all locks.", static_cast<double>(all.holders));
  total("interlock_store_waiters", "Waiters for all locks.", static_cast<double>(all.waiters));
  total("interlock_store_oldest_hold_seconds", "How long the oldest holder has held.",
        observe::seconds(all.oldest_hold));
  total("interlock_store_longest_wait_seconds", "How long the oldest waiter has waited.",
        observe::seconds(all.longest_wait));
  if (!names) return std::move(out.text());

  const auto each = [&](std::string_view name, std::string_view help, const auto& value) {
    if (locks.empty()) return;
    out.family(name, "gauge", help);
    for (const auto& of : locks) {
      out.sample({{"store", store.name}, {"node", store.where}, {"lock", of.lock}}, value(of));
    }
  };
  each("interlock_lock_holders", "Holders of the lock.",
       [](const Figures& of) { return static_cast<double>(of.holders); });
  each("interlock_lock_waiters", "Waiters for the lock.",
       [](const Figures& of) { return static_cast<double>(of.waiters); });
  each("interlock_lock_oldest_hold_seconds", "How long its oldest holder has held it.",
       [](const Figures& of) { return observe::seconds(of.oldest_hold); });
  each("interlock_lock_longest_wait_seconds", "How long the oldest waiter has waited.",
       [](const Figures& of) { return observe::seconds(of.longest_wait); });
  return std::move(out.text());
}

}  // namespace interlock
