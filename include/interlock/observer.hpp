// Told what happens, for logs and metrics.
#pragma once

#include <cstdint>
#include <string_view>

#include "interlock/claim.hpp"
#include "interlock/error.hpp"

namespace interlock {

enum class Event : std::uint8_t {
  asked,      ///< an acquisition began
  queued,     ///< it waits; `place` are ahead of it
  granted,    ///< `elapsed`: how long that took
  timed_out,  ///< gave up: bounded by time, by tries, busy, or cancelled (see `error`)
  refused,    ///< the store failed or said no
  renewed,
  renewal_failed,  ///< no answer this time; the lease still has `elapsed` left
  lost,            ///< `error` says why
  released,        ///< `elapsed`: how long it was held
  release_failed,  ///< a destructor's or a background release; the TTL ends the lease
  store_down,      ///< the store did not answer, for the first time since it last did
  store_back,      ///< it answers again
  warned,          ///< `error` says what about the store is risky for locks; the claim is empty
};

std::string_view to_string(Event event) noexcept;

/// What is known about the event; references are good during the call only.
struct Observation {
  Event event;
  const Claim& claim;
  std::uint32_t place = 0;
  Duration elapsed{};
  const Error* error = nullptr;
};

/// Called from any thread, also from several at once, and from the thread that watches every
/// deadline: be quick, and don't call back into the client.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on(const Observation& observation) noexcept = 0;
};

}  // namespace interlock
