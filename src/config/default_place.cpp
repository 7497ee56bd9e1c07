#include "config/default_place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "interlock/client.hpp"
#include "interlock/config.hpp"

namespace interlock {

namespace config {
namespace {

constexpr const char* kScheme = "file://";
constexpr const char* kAdvice =
    "name a store with --url, with INTERLOCK_URL or in interlock.json, the same for all that have "
    "to exclude each other";

std::string path_in(std::string_view directory) {
  return std::string(directory) + "/interlock-" + std::to_string(::geteuid());
}
std::string store_in(std::string_view directory) { return kScheme + path_in(directory); }

bool is_directory(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// Decided by what the system has, and not by what this process may write. A service that may not
// write there gets an error, and not another place.
const char* base() {
  // systemd-logind empties /dev/shm of other users' files when they log out.
  constexpr uid_t kLastSystemUser = 999;
  if (::geteuid() <= kLastSystemUser && is_directory("/dev/shm")) return "/dev/shm";
  return is_directory("/var/tmp") ? "/var/tmp" : "/tmp";
}

// A service with PrivateTmp=yes sees a directory of its own there.
bool is_private(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  bool found = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string skipped;
    std::string root;
    std::string point;
    fields >> skipped >> skipped >> skipped >> root >> point;
    if (point == path) found = root.find("/systemd-private-") != std::string::npos;
  }
  return found;
}

// Every user's, in builds before this one.
std::string former_place() { return store_in("/dev/shm"); }

bool is_ours(const std::string& url) {
  struct stat info {};
  return ::lstat(url.substr(std::string_view(kScheme).size()).c_str(), &info) == 0 &&
         S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Below a directory that everybody may write to, anybody can be the first to make it.
void refuse_another_owner(const Error::Where& where) {
  const auto place = path_in(base());
  struct stat info {};
  if (::lstat(place.c_str(), &info) != 0 || info.st_uid == ::geteuid()) return;
  throw Error(Errc::refused,
              "the directory for the locks of user " + std::to_string(::geteuid()) + ", " + place +
                  ", was made by user " + std::to_string(info.st_uid) +
                  ", who could hold them up, so it is not used; an administrator can put that "
                  "right: rm -rf " +
                  place + " && mkdir -m 0700 " + place + " && chown " +
                  std::to_string(::geteuid()) + " " + place + "; or " + kAdvice,
              where);
}

std::string held_in(const std::string& former, const ResourceState& resource) {
  const auto pid = resource.holders.front().who.pid;
  return "'" + resource.resource + "' is held by " +
         (pid == 0 ? "a token" : "process " + std::to_string(pid)) + " in " + former +
         ", where earlier builds keep their locks, and the two places don't exclude each other; "
         "wait until nobody holds a lock there (interlock list --url " +
         former + "), or use that place with INTERLOCK_URL=" + former;
}

}  // namespace

void check_default_place(std::string_view url) {
  if (url != user_store_url()) return;
  const Error::Where where{.resource = {}, .node = std::string(url), .maybe_held = false};
  if (is_private(base())) {
    throw Error(Errc::refused,
                std::string("this process has a ") + base() +
                    " of its own (PrivateTmp=), where no other process would see its locks; " +
                    kAdvice,
                where);
  }
  refuse_another_owner(where);
  const auto former = former_place();
  if (former == url || !is_ours(former)) return;
  for (const auto& resource : Client(stores::open(former)).inspect().resources) {
    if (!resource.holders.empty()) throw Error(Errc::refused, held_in(former, resource), where);
  }
}

}  // namespace config

void detail::check_user_store() { config::check_default_place(user_store_url()); }

std::string user_store_url() { return config::store_in(config::base()); }

}  // namespace interlock
