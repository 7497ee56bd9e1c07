// Durations as people write them: "10s", "1m30s", "250ms", "1h", "1.5s".
#pragma once

#include <string>
#include <string_view>

#include "interlock/clock.hpp"

namespace interlock {

/// Reads one or more numbers with units (h, m, s, ms, us, ns), largest first: "1m30s". A bare
/// number is refused, since nobody can tell its unit. Throws Error (invalid) that says what is
/// accepted.
Duration parse_duration(std::string_view text);

/// The shortest text that a person reads at a glance: "250ms", "10s", "1m30s". Rounded to three
/// digits or so, except that whole seconds are never dropped.
std::string format_duration(Duration value);

}  // namespace interlock
