// A store made of stores: a claim holds when a majority of independent servers says so. See
// docs/guarantees.md for what that promises and why, and scripts/redlock_*.lua for each step.
#pragma once

#include <memory>

#include "interlock/backend.hpp"

namespace interlock::redis {

/// redlock://[user[:password]@]host[:port],host,host[/database][?options of redis://], or
/// redlock:?nodes=URL,URL,URL with each URL in percent-encoding. Throws Error (invalid).
std::unique_ptr<Backend> open_redlock(Url url);

}  // namespace interlock::redis
