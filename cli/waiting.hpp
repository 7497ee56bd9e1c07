// Taking a lock at the command line: signals end the wait, and a person sees who is in the way.
#pragma once

#include <optional>

#include "guardian.hpp"
#include "interlock/client.hpp"
#include "options.hpp"
#include "signals.hpp"

namespace cli {

struct Waited {
  std::optional<interlock::Lease> lease;
  /// Without a lease: the exit status, after the reason was told on stderr.
  int exit_status = 0;
};

/// Waits for the lock as the options say. On a terminal it shows, after a second, who holds it.
/// A signal that asks us to end ends the wait and leaves nothing in the queue. `guardian`, if there
/// is one, passes such signals on.
Waited wait_for_lock(const interlock::Client& client, const ClaimOptions& claim,
                     const interlock::Options& options, const Events& events,
                     const Signals& signals, Guardian* guardian = nullptr);

}  // namespace cli
