// The arguments of this program, also if it was started by itself: as the full program, or as a process of a simulation.
#pragma once

#include <string>
#include <vector>

#include "descriptor.hpp"

namespace cli {

/// A variable of the environment with the number of a descriptor: the arguments are in that file. Among the words of a
/// process, others could read the passwords in them until the program is loaded and hides them.
inline constexpr const char* kArgumentsVariable = "INTERLOCK_ARGUMENTS_FD";

/// A file in memory with these, closed on exec. Throws Failure if there is no memory.
Descriptor file_of(const std::vector<std::string>& arguments);

/// What the command was called with.
std::vector<std::string> arguments_of(int argc, char** argv);

}  // namespace cli
