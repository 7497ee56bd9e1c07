// The two programs of this command. `interlock` has the stores that need no libraries, and no traces. It goes on as
// the full program, below libexec, where one of the others is asked for.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace cli {

/// Thrown where only the full program can go on. Nothing has been done or read by then that it could not do again.
struct NeedsFullProgram {};

/// Throws NeedsFullProgram if the settings are in a pipe, which can be read only once.
void check_settings_file(const Common& common);
/// Throws NeedsFullProgram if this program lacks the store that the settings name, or traces that the environment
/// asks for. The full program throws Error (invalid) for a store that no program has.
void check_program(const Common& common);

/// Goes on as the full program with these arguments. `argv` is what ps(1) shows of them. Throws Failure if the
/// full program can't be started.
[[noreturn]] void become_full_program(char** argv, const std::vector<std::string>& arguments);

}  // namespace cli
