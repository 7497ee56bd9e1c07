// Programs that tests run and wait for.
#pragma once

#include "servers/process.hpp"

namespace interlock::servers {

/// Runs a program and waits for its end: its exit status, and what it printed in `output`.
inline int run(std::vector<std::string> words, const std::string& output) {
  Process process(std::move(words), output);
  int status = -1;
  if (::waitpid(process.pid(), &status, 0) != process.pid()) return -1;
  process.forget();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace interlock::servers
