#include "process_group.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace cli {

namespace {

struct Stat {
  char state = 'X';
  pid_t group = 0;
};

// "pid (name, which may hold anything) state ppid pgrp …"
Stat read_stat(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  Stat stat;
  const auto name_end = line.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos || std::sscanf(line.c_str() + name_end + 1, " %c %d %d",
                                                   &stat.state, &parent, &stat.group) != 3) {
    return {};
  }
  return stat;
}

// The first thread of a process may have ended before the others.
bool has_other_threads(const std::filesystem::path& process) {
  std::error_code gone;
  int threads = 0;
  for (std::filesystem::directory_iterator it(process / "task", gone), end; !gone && it != end;
       it.increment(gone)) {
    ++threads;
  }
  return threads > 1;
}

}  // namespace

int living_members(pid_t group) {
  if (::kill(-group, 0) != 0 && errno == ESRCH) return 0;
  int living = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Stat stat = read_stat(it->path());
    if (stat.group != group || stat.state == 'X') continue;
    if (stat.state == 'Z' && !has_other_threads(it->path())) continue;
    ++living;
  }
  // Without /proc the answer of kill() has to do.
  return error ? 1 : living;
}

}  // namespace cli
