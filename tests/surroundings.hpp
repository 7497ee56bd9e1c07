// What a program finds around it, for tests of what it makes of that.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "conformance/temporary_directory.hpp"

namespace interlock::testing_support {

/// A directory of its own to be in, and none of the variables that Interlock reads. Afterwards all is
/// as it was before.
class Surroundings {
 public:
  Surroundings() {
    for (const auto* name :
         {"INTERLOCK_CONFIG", "INTERLOCK_URL", "LOCKING_BACKEND", "REDIS_HOST", "REDIS_PORT",
          "REDIS_DB", "REDIS_PASSWORD", "PGPASSWORD", "PGSERVICE", "SECRET"}) {
      const char* value = getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(name);
    }
    std::filesystem::current_path(directory_.path());
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  ~Surroundings() {
    for (const auto& [name, value] : before_) {
      unsetenv(name.c_str());
      if (value) setenv(name.c_str(), value->c_str(), 1);
    }
    std::error_code ignored;
    std::filesystem::current_path(was_in_, ignored);
  }

  void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  void unset(const char* name) { unsetenv(name); }
  /// Writes a file into the current directory; its path.
  std::filesystem::path write(const std::string& name, const std::string& text) {
    auto path = directory_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return directory_.path(); }

 private:
  std::filesystem::path was_in_ = std::filesystem::current_path();
  TemporaryDirectory directory_;
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace interlock::testing_support
