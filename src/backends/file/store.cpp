#include "backends/file/store.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "backends/file/obituaries.hpp"
#include "backends/file/repair.hpp"
#include "backends/file/shard_file.hpp"
#include "backends/file/shard_lock.hpp"
#include "interlock/duration.hpp"

namespace interlock::file {

namespace {

/// Without a doorbell, a waiter has to look.
constexpr Duration kLookWithoutBell = std::chrono::milliseconds(100);
/// Of those in a waiter's way, so many are watched. The heartbeat finds the rest.
constexpr std::size_t kWatched = 16;

}  // namespace

Store::Store(const std::filesystem::path& directory, bool allow_network_file_system)
    : directory_(directory, allow_network_file_system),
      boot_(boot_id()),
      realm_(pid_realm()),
      self_{::getpid(), start_time(::getpid())},
      doorbell_(directory_) {
  try {
    settle_after_boot(directory_, boot_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // A full disk, say: whoever needs a file that can't be read is told then.
  }
  Doorbell::remove_leftovers(directory_);
}

bool Store::attempt(std::span<Operation* const> operations, ShardId& blocker) {
  std::vector<Wake> wakes;
  try {
    bool done = false;
    try {
      done = transact(operations, wakes, blocker);
    } catch (const DirectoryRemoved&) {
      directory_.restore();
      wakes.clear();
      done = transact(operations, wakes, blocker);
    }
    if (!done) return false;
  } catch (const DirectoryRemoved&) {
    wakes.clear();
    for (auto* op : operations) {
      op->answer =
          Answer::failed({Errc::refused,
                          "the directory is being removed again and again",
                          {.resource = {}, .node = directory_.where(), .maybe_held = false}});
    }
  } catch (const Error& error) {
    wakes.clear();
    // One of many may ask for more than there is room for: the others should not suffer for it.
    if (operations.size() > 1) {
      for (std::size_t i = 0; i < operations.size(); ++i) {
        if (attempt(operations.subspan(i, 1), blocker)) continue;
        operations[i]->answer = Answer::failed(locked_out(blocker, Duration::zero()));
      }
      return true;
    }
    const Operation& op = *operations.front();
    operations.front()->answer = Answer::failed(error.about(op.claim.parts.front().resource));
  } catch (const std::exception& error) {
    wakes.clear();
    for (auto* op : operations) op->answer = Answer::failed({Errc::unreachable, error.what()});
  }
  wake(operations, wakes);
  return true;
}

bool Store::transact(std::span<Operation* const> operations, std::vector<Wake>& wakes,
                     ShardId& blocker) {
  const auto locks =
      ShardLocks::try_take(directory_, operations.front()->shards, Access::write, blocker);
  if (!locks) return false;
  commit(operations, wakes);
  return true;
}

void Store::commit(std::span<Operation* const> operations, std::vector<Wake>& wakes) {
  const auto& shards = operations.front()->shards;
  std::vector<ShardFile> files;
  std::vector<ShardState> states;
  LockTable table(rules(states, shards));
  const auto now = BootClock::now();
  ReadLimit limit;
  files.reserve(shards.size());
  for (const auto id : shards) {
    const auto& file = files.emplace_back(directory_, id);
    limit.add(file);
    try {
      states.push_back(read_shard(file.content(), id, {.boot = boot_, .now = now}, table));
    } catch (const Error& error) {
      throw file.unreadable(error);
    }
    table.set_last_ticket(std::max(table.last_ticket(), states.back().ticket));
  }

  table.sweep(now, wakes);
  for (auto* op : operations) {
    const auto origin = origin_of(op->claim);
    switch (op->kind) {
      case Operation::Kind::acquire:
        op->answer = table.acquire(op->claim, op->queue, origin, now, wakes);
        break;
      case Operation::Kind::renew:
        op->answer = table.renew(op->claim, origin, now, wakes);
        break;
      case Operation::Kind::release:
        op->answer = table.release(op->claim, doorbell_.home(), now, wakes);
        break;
    }
    if (op->kind == Operation::Kind::acquire) attend(*op, table, now);
    if (op->kind == Operation::Kind::release) waiters_.forget(op->claim.owner);
  }

  std::vector<ShardFile*> changed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto text = write_shard(table, shards[i], states[i], boot_);
    if (text == files[i].content()) continue;
    files[i].prepare(text);  // here a full disk shows, and nothing has been changed
    changed.push_back(&files[i]);
  }
  std::size_t swapped = 0;
  try {
    for (; swapped < changed.size(); ++swapped) changed[swapped]->replace();
  } catch (...) {
    while (swapped > 0) changed[--swapped]->undo();
    throw;
  }
}

// Makes sure that this owner can be reached, before its record can be seen: or somebody could ring
// in vain.
void Store::attend(Operation& op, const LockTable& table, TimePoint now) {
  const bool queued = op.answer.verdict == Verdict::queued;
  if (!queued) waiters_.forget(op.claim.owner);
  if (!queued && op.answer.verdict != Verdict::granted) return;
  const bool reachable = doorbell_.hang(news_);
  if (!queued) return;
  if (!reachable) {
    op.answer.look_again =
        std::min(op.answer.look_again.value_or(kLookWithoutBell), kLookWithoutBell);
  }
  if (waiters_.put(op.claim.owner, in_the_way(table, op.claim), now)) news_ = true;
}

LockTable::Rules Store::rules(std::vector<ShardState>& states,
                              std::span<const ShardId> shards) const {
  return {.next_fence =
              [&states, shards](const std::string& resource) {
                const auto at = std::lower_bound(shards.begin(), shards.end(), shard_of(resource));
                auto& last = states[static_cast<std::size_t>(at - shards.begin())].fence;
                return last = next_fence(last);
              },
          .gone = Obituaries(self_, realm_),
          .ticket_ttl = kTicketTtl};
}

Origin Store::origin_of(const Claim& claim) const {
  const auto pid = claim.who->pid;
  if (pid <= 0 || !claim.who->tied) return {.home = doorbell_.home()};
  const bool own = pid == self_.pid;
  const auto born = own ? self_.born : start_time(pid);
  return {.home = doorbell_.home(), .born = born, .realm = realm_, .own = own};
}

std::vector<Process> Store::in_the_way(const LockTable& table, const Claim& claim) const {
  std::vector<Process> processes;
  for (const auto& record : table.in_the_way(claim, kWatched)) {
    const Process process{record.who->pid, record.origin.born};
    if (process.pid > 0 && process.pid != self_.pid && record.origin.realm == realm_) {
      processes.push_back(process);
    }
  }
  return processes;
}

void Store::wake(std::span<Operation* const> operations, std::vector<Wake>& wakes) const {
  // Whoever has just got it need not be told.
  std::erase_if(wakes, [&](const Wake& wake) {
    return std::any_of(operations.begin(), operations.end(), [&](const Operation* op) {
      return op->kind == Operation::Kind::acquire && op->claim.owner == wake.owner &&
             op->answer.verdict == Verdict::granted;
    });
  });
  std::map<std::uint64_t, std::vector<Owner>> by_home;
  std::unordered_set<Owner> seen;
  for (const auto& wake : wakes) {
    if (seen.insert(wake.owner).second) by_home[wake.home].push_back(wake.owner);
  }
  for (const auto& [home, owners] : by_home) {
    if (home == doorbell_.home()) {
      ring(owners);
    } else {
      Doorbell::ring(directory_, home, owners);
    }
  }
}

void Store::ring(std::span<const Owner> owners) const {
  if (!sink_) return;
  for (const auto& owner : owners) {
    if (!silent_) sink_(owner);
  }
}

Error Store::locked_out(ShardId blocker, Duration waited) const {
  return {Errc::unreachable,
          "the lock file " + directory_.path_of(lock_name(blocker)) + " has been locked for " +
              format_duration(waited) + " by " + describe_locker(directory_, blocker) +
              "; is it stopped, or its disk stuck?",
          {.resource = {}, .node = directory_.where(), .maybe_held = false}};
}

}  // namespace interlock::file
