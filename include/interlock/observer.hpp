// Told what happens, for logs and metrics. Ready made: log.hpp, metrics.hpp, tracing.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/error.hpp"
#include "interlock/traits.hpp"

namespace interlock {

/// An acquisition is asked for once, and ends once: granted, timed_out or refused. What was granted
/// or adopted ends once, too: released, lost, release_failed or detached. (If the claim has an
/// `instead_of`, a lease changes its mode: granted then begins no new one.)
enum class Event : std::uint8_t {
  opened,     ///< a client was made; with the ttl and limit its program means to use, if it told
  asked,      ///< an acquisition began, on this thread; it waits for `limit` at most
  queued,     ///< it waits; `place` are ahead of it
  granted,    ///< `elapsed`: how long that took
  timed_out,  ///< gave up: bounded by time, by tries, busy, or cancelled (see `error`)
  refused,    ///< the store failed or said no
  adopted,    ///< a lease was taken over by its token
  renewed,
  renewal_failed,  ///< no answer this time; the lease still has `elapsed` left
  lost,            ///< `error` says why; `elapsed`: how long it was held
  released,        ///< `elapsed`: how long it was held
  release_failed,  ///< not confirmed: it goes on in the background, and the TTL ends the lease
  detached,        ///< a lease went out of our hands as a token
  cleanup_failed,  ///< the store did not confirm a release in the background; it is tried again
  store_down,      ///< the store did not answer, for the first time since it last did
  store_back,      ///< it answers again
  warned,          ///< `error` says what about the store is risky for locks; the claim is empty
  found,           ///< no work was left: another had done it while we waited (see Client::tell)
};

std::string_view to_string(Event event) noexcept;

/// What is known about the event; references are good during the call only.
struct Observation {
  Event event;
  const Claim& claim;
  std::string_view resource{};  ///< the first name that was asked for; empty: about the store
  std::uint32_t place = 0;
  Duration elapsed{};
  /// asked, timed_out, refused, opened. Zero: one shot; none: as long as it takes
  std::optional<Duration> limit{};
  const Error* error = nullptr;
  const Traits* store = nullptr;  ///< whose client this is; never null
};

/// Called from any thread, also from several at once, and from the thread that watches every
/// deadline: be quick, and don't call back into the client.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on(const Observation& observation) noexcept = 0;
};

/// All of them as one, told in this order: `{.observer = observers({log, metrics})}`. Leave out
/// with a null; none at all is null.
std::shared_ptr<Observer> observers(std::vector<std::shared_ptr<Observer>> all);

}  // namespace interlock
