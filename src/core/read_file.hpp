// A whole file as a string.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace interlock::core {

/// The bytes of a file, or nothing if there is no such file. Throws std::system_error that names it if
/// it can't be read. `check` may look at the open descriptor before, and throw.
std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check = {});

}  // namespace interlock::core
