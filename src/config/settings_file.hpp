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

/// What a file says, or why it was not read.
struct SettingsFile {
  std::vector<FileEntry> entries{};
  std::string skipped{};  ///< for people; empty: it was read
};

/// Throws Error (invalid) that names the file, the line and the way out. `found_here`: nobody named
/// this file, it was just there. Then it has to be a regular file and no link, its owner alone may write to it, and it is
/// skipped if its owner is neither this user nor root.
SettingsFile read_settings_file(const std::filesystem::path& path, bool found_here);

/// For the URL in a file that was found: throws Error (invalid) if it has an option that reads a secret of this
/// machine, which would go to a server that the file chose.
void refuse_local_secrets(const std::string& url);

/// "10s", "1m30s", or "[d.]hh:mm:ss[.fraction]". Throws Error (invalid).
Duration parse_time_span(const std::string& text);

}  // namespace interlock::config
