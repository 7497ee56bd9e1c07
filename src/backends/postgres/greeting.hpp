// How connections begin.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/postgres/link.hpp"
#include "backends/postgres/schema.hpp"

namespace interlock::postgres {

/// A fresh number for a session that can be told, never 0. `waits`: one that waits by itself, too.
std::int64_t fresh_home(bool waits = false);
/// Where its messages go.
std::string channel_of(std::int64_t home);

/// Locks the number of a session as long as it lives.
std::string home_lock(std::int64_t home);
/// Ends the session that has locked this number. It may live on at the server when its client has lost
/// it, with its locks, and with requests that are still on their way.
std::string end_session(std::int64_t home);

/// What every greeting begins with: a look at the server, and, for an acquire, the schema if there is none yet.
/// `pooled`: told whether a pooler is in between; what it returns is run then, one after the other.
std::function<std::string(const Link::Greeting&)> greeting(
    std::function<std::vector<std::string>(Link& link, bool pooled, const Hello& hello)> then);

/// What ends a statement that waits for too long, and shows the server that the other end is gone.
std::string session_settings(Duration call_timeout);
/// Clears away what ended long ago and nobody has asked for since.
inline constexpr auto kTidy = "SELECT interlock.tidy()";
/// As many as can have been given out, by all sessions at once, before the first of them is on disk.
inline constexpr auto kSkipNumbers =
    "SELECT count(nextval('interlock.numbers')) FROM generate_series(1, 512)";

}  // namespace interlock::postgres
