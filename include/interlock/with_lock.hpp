// Runs a function while holding a lock.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "interlock/acquirer.hpp"

namespace interlock {

/// Acquires, runs `f`, releases, and gives back what `f` gave. `f` is called with a std::stop_token
/// that fires if the lease is lost: stop then. It may take the Lease& instead, for its fence, or
/// nothing at all.
///
///     const int rows = with_lock(mutex, [&](std::stop_token lost) { return compact(lost); });
///
/// Waits as long as Options::max_wait; `stop` ends the wait, and not `f`. Throws as acquire() does. An
/// exception of `f` passes through, and wins over whatever the release meets. If `f` ended well, a
/// lease that was lost meanwhile is an error (lost): somebody else may have been at it, too.
template <class F>
auto with_lock(const Acquirer& lock, F&& f, std::stop_token stop = {}) {
  const auto run = [&f](Lease& lease) -> decltype(auto) {
    if constexpr (std::invocable<F&, std::stop_token>) {
      return std::invoke(f, lease.lost());
    } else if constexpr (std::invocable<F&, Lease&>) {
      return std::invoke(f, lease);
    } else {
      return std::invoke(f);
    }
  };
  auto lease = lock.acquire(std::move(stop));
  const auto finish = [&lease] {
    if (lease.release() != LeaseState::lost) return;
    throw Error(Errc::lost,
                "lost while the function ran (" + lease.lost_reason() +
                    "): its work may have overlapped another's",
                {.resource = lease.resource()});
  };
  // The lease's destructor releases, too, and reports to the observer only: an exception of f wins.
  if constexpr (std::is_void_v<decltype(run(lease))>) {
    run(lease);
    finish();
  } else {
    auto result = run(lease);
    finish();
    return result;
  }
}

}  // namespace interlock
