// A whole file as a string.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace interlock::core {

/// Whether the last part of a path may be a symbolic link.
enum class Links { followed, refused };

/// The bytes of a file, or nothing if there is no such file. Throws std::system_error that names it if
/// it can't be read, has more than `most` bytes, is a pipe that nothing comes out of, or is a link where none may be
/// (ELOOP). `check` may look at the open descriptor before, and throw: what it saw is what is read.
std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check = {},
                                     std::size_t most = std::numeric_limits<std::size_t>::max(),
                                     Links links = Links::followed);

}  // namespace interlock::core
