// What this host knows about processes: is one still there, and is it still the same one?
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.hpp"

namespace interlock::file {

/// A process that can't be mistaken for a later one with the same number.
struct Process {
  std::int64_t pid = 0;
  std::uint64_t born = 0;  ///< when it started, in clock ticks since boot; 0: unknown

  auto operator<=>(const Process&) const = default;
};

/// What /proc/PID/stat says.
struct Stat {
  char state = '?';
  std::uint64_t threads = 0;
  std::uint64_t born = 0;
};
/// "pid (any text) state ppid …", see proc(5). Nothing if it is cut off.
std::optional<Stat> parse_stat(std::string_view text);

/// Changes with every boot. Throws Error (refused) if /proc does not tell.
std::string boot_id();

/// In which pid namespace this process's numbers mean something; 0: unknown.
std::uint64_t pid_realm() noexcept;

/// When the process started, see Process; 0 if it is not there or can't be asked.
std::uint64_t start_time(std::int64_t pid) noexcept;

/// Has certainly ended: no such process, another one under its number, or a zombie. False in doubt.
bool has_ended(const Process& process) noexcept;

/// Becomes readable when the process ends. Empty if that is not to be had.
FileDescriptor watch_process(const Process& process) noexcept;

}  // namespace interlock::file
