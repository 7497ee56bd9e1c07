// Standard error, which may be a pipe that nobody reads, or a terminal that is stopped.
#pragma once

#include <chrono>
#include <string_view>

namespace cli {

/// How long a message may wait for its reader. A lease can't wait: its deadlines and signals are served by the same thread.
inline constexpr auto kMessagePatience = std::chrono::milliseconds(50);

/// Writes as much of the text as fits within that time, and drops the rest. True: all was written.
/// Any thread may call it; with no patience it never waits.
bool write_error(std::string_view text, std::chrono::milliseconds patience = kMessagePatience);

}  // namespace cli
