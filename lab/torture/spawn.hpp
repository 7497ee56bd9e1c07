// Starts a program.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace torture {

struct Spawn {
  std::string program{};             ///< a path, or a name to be looked for in PATH
  std::vector<std::string> words{};  ///< its name and its arguments
  std::optional<std::vector<std::string>> environment{};  ///< nothing: that of this process
  int input = -1;                                         ///< -1: /dev/null
  int output = -1;                                        ///< -1: that of this process
  std::string errors{};                                   ///< a file to append to
};

/// Its process id; 0: it can't be started.
pid_t spawn(Spawn what);

/// Waits for its end: the wait status.
int wait_for_end(pid_t pid);

}  // namespace torture
