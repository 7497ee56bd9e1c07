// A whole file as a string.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace interlock::core {

/// The bytes of a file, or nothing if there is no such file. Throws std::system_error that names it if
/// it can't be read, has more than `most` bytes, or is a pipe that nothing comes out of. `check` may
/// look at the open descriptor before, and throw.
std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check = {},
                                     std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace interlock::core
