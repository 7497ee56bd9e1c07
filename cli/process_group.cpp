#include "process_group.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace cli {

namespace {

Stat read_stat(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  return parse_stat(line);
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

// The real user: the directory belongs to the effective one.
uid_t user_of(const std::filesystem::path& process) {
  std::ifstream file(process / "status");
  for (std::string line; std::getline(file, line);) {
    unsigned user = 0;
    if (std::sscanf(line.c_str(), "Uid: %u", &user) == 1) return user;
  }
  return 0;
}

bool may_signal(pid_t pid) { return ::kill(pid, 0) == 0 || errno != EPERM; }

// The mount option hidepid: processes of other users don't show.
bool hides_processes() { return read_stat("/proc/1").state == 'X'; }

// It may be the /proc of another PID namespace, with other process ids.
bool proc_is_ours() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self", error);
  return !error && self == std::to_string(::getpid());
}

struct Found {
  std::vector<Member> living;
  std::vector<pid_t> zombies;
};

// All that is known without /proc. Zombies count as living.
Found ask_kernel(pid_t group) {
  if (::kill(-group, 0) == 0) return {.living = {Member{}}, .zombies = {}};
  if (errno == EPERM) return {.living = {Member{.may_be_ended = false}}, .zombies = {}};
  return {};
}

// Nothing at all: the kernel knows no process of the group.
Found look_at(pid_t group) {
  if (::kill(-group, 0) != 0 && errno == ESRCH) return {};
  if (!proc_is_ours()) return ask_kernel(group);
  Found found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Stat stat = read_stat(it->path());
    if (stat.group != group || stat.state == 'X') continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (stat.state == 'Z' && !has_other_threads(it->path())) {
      found.zombies.push_back(pid);
    } else {
      found.living.push_back(
          {.pid = pid, .user = user_of(it->path()), .may_be_ended = may_signal(pid)});
    }
  }
  const bool incomplete = found.zombies.empty() || error || hides_processes();
  if (found.living.empty() && incomplete) return ask_kernel(group);
  return found;
}

std::string name_of(uid_t user) {
  if (user == 0) return "root";
  const auto* entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : "user " + std::to_string(user);
}

}  // namespace

Stat parse_stat(const std::string& line) {
  Stat stat;
  const auto name_end = line.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos || std::sscanf(line.c_str() + name_end + 1, " %c %d %d",
                                                   &stat.state, &parent, &stat.group) != 3) {
    return {};
  }
  return stat;
}

std::vector<Member> living_members(pid_t group) { return look_at(group).living; }

void GroupEnd::look(pid_t group) {
  auto found = look_at(group);
  vanished_ = found.living.empty() && found.zombies.empty();
  const bool alike = found.living.empty() && found.zombies == zombies_;
  alike_ = !found.living.empty() ? 0 : alike ? alike_ + 1 : 1;
  living_ = std::move(found.living);
  zombies_ = std::move(found.zombies);
}

bool any_out_of_reach(const std::vector<Member>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& member) { return !member.may_be_ended; });
}

std::string cannot_end(const std::vector<Member>& members) {
  std::string list;
  for (const auto& member : members) {
    if (member.pid == 0)
      return "processes of the command, which /proc does not show, can't be ended";
    list += (list.empty() ? "" : ", ") + std::to_string(member.pid) + " of " + name_of(member.user);
  }
  const auto count = std::to_string(members.size());
  return count + (members.size() == 1 ? " process" : " processes") +
         " of the command can't be ended (" + list + ")" +
         (any_out_of_reach(members) ? ": " + std::generic_category().message(EPERM) : "");
}

}  // namespace cli
