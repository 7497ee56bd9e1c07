// A connection to a store, and all that is done with it besides taking locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/attempt.hpp"
#include "interlock/backend.hpp"
#include "interlock/inspect.hpp"
#include "interlock/lease.hpp"
#include "interlock/options.hpp"

namespace interlock {

enum class Event : std::uint8_t;

/// What an asynchronous acquisition calls when it is over, once.
using Callback = std::function<void(Attempt)>;

/// One store, one background thread, any number of locks. A cheap handle: copies share the client,
/// and locks, leases and pending acquisitions keep it alive. Thread-safe.
///
/// In a forked child it holds nothing and refuses to work: connect anew there. At an orderly exit
/// of the process, whatever it still holds is released.
class Client {
 public:
  explicit Client(std::unique_ptr<Backend> backend, ClientOptions options = {});

  [[nodiscard]] const Traits& traits() const;

  /// Who holds what and who waits. Throws Error if the store can't be read.
  [[nodiscard]] Snapshot inspect(const Query& query = {}) const;

  /// Takes over a lease from a token that Lease::detach() made: renews it at once and from then on.
  /// Throws Error (lost) if it has ended. `renew` = false: adopts it without keeping it alive.
  [[nodiscard]] Lease adopt(std::string_view token, bool renew = true) const;

  /// Force-release: takes the resource away from this owner, as inspect() showed it. The holder's
  /// lease is lost at its next renewal. False: the owner had nothing there.
  bool evict(std::string_view resource, const Owner& owner) const;

  /// For what is built on locks: passes it on to the observer, if there is one.
  void tell(Event event, std::string_view resource, Duration elapsed = {}) const;

  /// What the fronts are made of: any claim, any wait. See Mutex and the others for the usual ways.
  [[nodiscard]] Attempt acquire(std::vector<Part> parts, const Options& options,
                                const Wait& wait) const;
  void acquire(std::vector<Part> parts, const Options& options, const Wait& wait,
               Callback then) const;

 private:
  friend class Acquirer;
  std::shared_ptr<core::Engine> core_;
};

/// Opens the store that the URL names: `memory:`, `file:///var/lib/app/locks`. Throws Error
/// (invalid) for a URL that makes no sense, and says which ones do.
Client connect(std::string_view url, ClientOptions options = {});

}  // namespace interlock
