#include "interlock/locking.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "core/read_file.hpp"
#include "interlock/duration.hpp"
#include "interlock/multi_lock.hpp"

namespace interlock {

/// One successful acquire().
struct Locking::Held {
  Held(const std::vector<std::string>& resources, Lease granted)
      : names(resources.begin(), resources.end()), lease(std::move(granted)) {}

  std::set<std::string> names;  // not given back yet; guarded by Locking::mutex_
  std::mutex releasing;         // a lease is for one thread at a time
  Lease lease;
};

namespace {

[[noreturn]] void refuse(const std::string& why, const std::vector<std::string>& resources) {
  throw Error(
      Errc::invalid, why,
      {.resource = resources.empty() ? "" : resources.front(), .node = {}, .maybe_held = false});
}

// A name that nobody can see is a mistake of the caller's.
void check_names(const std::vector<std::string>& resources) {
  for (const auto& name : resources) {
    if (name.find_first_not_of(' ') == std::string::npos)
      refuse("a name is blank; a resource needs one that can be seen", resources);
  }
}

// Busy or late is a value, a store that fails is not.
std::optional<Lease> lease_of(Attempt attempt) {
  if (attempt) return *std::move(attempt);
  return std::nullopt;
}

}  // namespace

Locking::Locking(std::string identity, Client locks, LockingOptions options)
    : identity_(std::move(identity)), locks_(std::move(locks)), options_(options) {
  if (identity_.empty())
    throw Error(Errc::invalid_owner,
                "Locking needs an identity: a name for who holds, like \"worker-1\"");
  check_text("the identity", identity_, Errc::invalid_owner);
}

Locking::~Locking() = default;

Options Locking::options(Duration duration, std::string who) const {
  return {.ttl = duration,
          .label = std::move(who),
          .identity = identity_,
          .hierarchy = options_.hierarchy};
}

bool Locking::acquire(const std::vector<std::string>& resources, Duration duration, std::string who,
                      Duration limit) {
  check_names(resources);
  if (limit < Duration::zero())
    refuse("the limit can't be negative; 0s looks once and does not wait", resources);
  if (resources.empty()) return true;
  const MultiLock all(locks_, resources, options(duration, std::move(who)));
  auto lease = lease_of(all.try_acquire_for(limit));
  if (!lease) return false;
  auto held = std::make_shared<Held>(resources, std::move(*lease));
  const std::lock_guard lock(mutex_);
  held_.push_back(std::move(held));
  return true;
}

std::optional<Lease> Locking::try_acquire(const std::string& key, Duration timeout, Duration expiry,
                                          std::stop_token cancel) {
  check_names({key});
  if (timeout <= Duration::zero())
    refuse(
        "a timeout of " + format_duration(timeout) + " is not possible; it has to be more than 0s",
        {key});
  const Acquirer one(locks_, {exclusive(key)}, options(expiry, {}));
  return lease_of(one.try_acquire_for(timeout, std::move(cancel)));
}

bool Locking::release(const std::vector<std::string>& resources) {
  // Who asks later does not find them any more; then the store is told.
  std::set<std::shared_ptr<Held>> touched;
  bool all_ours = true;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& name : std::set<std::string>(resources.begin(), resources.end())) {
      const auto newest = std::find_if(held_.rbegin(), held_.rend(), [&](const auto& held) {
        return held->names.contains(name);
      });
      if (newest == held_.rend()) {
        all_ours = false;
        continue;
      }
      (*newest)->names.erase(name);
      touched.insert(*newest);
    }
    std::erase_if(held_, [](const auto& held) { return held->names.empty(); });
  }
  std::exception_ptr failure;
  for (const auto& held : touched) {
    const std::lock_guard one_at_a_time(held->releasing);
    auto given_back = held->lease.resources();
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(given_back, [&](const auto& name) { return held->names.contains(name); });
    }
    try {
      if (held->lease.release(given_back) == LeaseState::lost) all_ours = false;
    } catch (const Error&) {
      failure = std::current_exception();  // the others are to be given back all the same
    }
  }
  if (failure) std::rethrow_exception(failure);
  return all_ours;
}

bool Locking::holds(const std::vector<std::string>& resources) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(resources.begin(), resources.end(), [&](const std::string& name) {
    return std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
      return held->names.contains(name) && held->lease.state() == LeaseState::held;
    });
  });
}

std::map<std::string, std::string> Locking::who(const std::vector<std::string>& resources) const {
  std::map<std::string, std::string> labels;
  if (resources.empty()) return labels;  // a query that names nothing asks for everything
  check_names(resources);
  for (const auto& name : resources) check_resource(name);
  const std::set<std::string> names(resources.begin(), resources.end());
  for (const auto& state : locks_.inspect({.resources = {names.begin(), names.end()}}).resources) {
    // What is held only because something below it is, was acquired by nobody.
    const auto holder = std::find_if(state.holders.begin(), state.holders.end(),
                                     [](const Entry& entry) { return !entry.ancestor; });
    if (holder != state.holders.end()) labels.emplace(state.resource, holder->who.label);
  }
  return labels;
}

std::optional<std::string> Locking::read_with_lock(const std::filesystem::path& path,
                                                   Duration duration, Duration limit) {
  check_names({path.string()});
  const Acquirer reader(locks_, {shared(path.string())}, options(duration, {}));
  const auto lease = lease_of(reader.try_acquire_for(limit));
  if (!lease) return std::nullopt;
  auto bytes = core::read_file(path);
  if (*lease) return bytes;
  throw Error(Errc::lost,
              "lost while the file was read (" + lease->lost_reason() +
                  "): somebody may have written to it meanwhile; read it again",
              {.resource = path.string()});
}

}  // namespace interlock
