// Every record in a store says which format it has. A program refuses a record of another format, and leaves it as it is.
#pragma once

#include <cstdint>
#include <string>

namespace interlock::core {

/// What is wrong with a record of another format, in words for an Error (refused). 0: it does not say its format.
std::string other_format(std::uint64_t found, std::uint64_t known);

}  // namespace interlock::core
