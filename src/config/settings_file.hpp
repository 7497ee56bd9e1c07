// The settings file: JSON with one object, and nothing in it that Interlock does not know.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "interlock/clock.hpp"

namespace interlock::config {

/// What the file says about one setting.
struct FileEntry {
  std::string key{};                      ///< our name for it
  std::variant<bool, std::string> value;  ///< of the type that the key has
  std::string where{};                    ///< "/srv/app/interlock.json:3"
  std::string spelling{};                 ///< the name that the file uses
};

/// Throws Error (invalid) that names the file, the line and the way out. `found_here`: nobody named
/// this file, it was just there.
std::vector<FileEntry> read_settings_file(const std::filesystem::path& path, bool found_here);

/// "10s", "1m30s", or "[d.]hh:mm:ss[.fraction]". Throws Error (invalid).
Duration parse_time_span(const std::string& text);

}  // namespace interlock::config
