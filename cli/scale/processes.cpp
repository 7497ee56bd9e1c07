#include "processes.hpp"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "interlock/backend.hpp"

namespace cli::scale {

namespace fs = std::filesystem;

namespace {

template <class Number>
Number number(const std::string& text, int base = 10) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

int default_port(const std::string& scheme) {
  if (scheme.starts_with("postgres")) return 5432;
  if (scheme.starts_with("etcd")) return 2379;
  return 6379;
}

std::set<int> ports_of(const interlock::Url& url) {
  std::set<int> ports;
  std::istringstream hosts(url.authority);
  for (std::string host; std::getline(hosts, host, ',');) {
    const auto colon = host.rfind(':');
    const bool given = colon != std::string::npos && host.find(']', colon) == std::string::npos;
    ports.insert(given ? number<int>(host.substr(colon + 1)) : default_port(url.scheme));
  }
  return ports;
}

// The sockets that listen on one of the ports, as /proc names them.
std::set<std::string> listening(const std::set<int>& ports) {
  std::set<std::string> sockets;
  for (const auto* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retries, user, timeout, inode;
      if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retries >> user >>
            timeout >> inode))
        continue;
      const auto colon = local.rfind(':');
      if (state != "0A" || colon == std::string::npos) continue;
      if (ports.contains(number<int>(local.substr(colon + 1), 16)))
        sockets.insert("socket:[" + inode + "]");
    }
  }
  return sockets;
}

bool has_one_of(pid_t process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", error)) {
    const auto target = fs::read_symlink(entry.path(), error);
    if (!error && sockets.contains(target.string())) return true;
  }
  return false;
}

std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto process = number<pid_t>(entry.path().filename().string());
    if (process <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto end = text.rfind(')');
    if (end == std::string::npos || end + 4 > text.size()) continue;
    found[process] = number<pid_t>(text.substr(end + 4, text.find(' ', end + 4) - end - 4));
  }
  return found;
}

}  // namespace

Duration cpu_of(const std::vector<pid_t>& processes) {
  Duration sum{};
  for (const auto process : processes) {
    std::error_code error;
    for (const auto& thread :
         fs::directory_iterator("/proc/" + std::to_string(process) + "/task", error)) {
      std::ifstream file(thread.path() / "schedstat");
      Duration::rep ran = 0;
      if (file >> ran) sum += Duration(ran);
    }
  }
  return sum;
}

Duration cpu_of_machine() {
  std::ifstream file("/proc/stat");
  std::string word;
  long long user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, steal = 0;
  file >> word >> user >> nice >> system >> idle >> waiting >> irq >> soft >> steal;
  const auto ticks = user + nice + system + irq + soft + steal;
  return std::chrono::nanoseconds(std::chrono::seconds(1)) * ticks / ::sysconf(_SC_CLK_TCK);
}

std::vector<pid_t> servers_of(const std::string& text) {
  const auto url = interlock::Url::parse(text);
  if (url.scheme == "file") return {};
  const auto sockets = listening(ports_of(url));
  std::vector<pid_t> found;
  if (sockets.empty()) return found;
  const auto all = parents();
  std::set<pid_t> seen;
  for (const auto& [process, parent] : all) {
    if (has_one_of(process, sockets)) seen.insert(process);
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& [process, parent] : all)
      more = (seen.contains(parent) && seen.insert(process).second) || more;
  }
  found.assign(seen.begin(), seen.end());
  return found;
}

}  // namespace cli::scale
