#include "backends/file/ancestors.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/read_file.hpp"

namespace interlock::file {

namespace {

constexpr int kMostLinks = 40;  // as the kernel has it

// In a user namespace, all owners whom it does not map look like this one, root among them.
constexpr uid_t kUnmapped = 65534;

bool leaves_users_unmapped() try {
  constexpr unsigned long kAll = 4294967295;
  const auto map = core::read_file("/proc/self/uid_map", {}, 65536);
  unsigned long inside = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  return map && std::sscanf(map->c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 &&
         count != kAll;
} catch (const std::system_error&) {
  return false;
}

bool is_trusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid() || (owner == kUnmapped && leaves_users_unmapped());
}

// Whether it is the primary group of another user than `name`.
bool is_anothers_group(gid_t group, const std::string& name) {
  std::vector<char> room(65536);
  passwd user{};
  passwd* found = nullptr;
  bool another = false;
  ::setpwent();
  while (!another && ::getpwent_r(&user, room.data(), room.size(), &found) == 0)
    another = user.pw_gid == group && name != user.pw_name;
  ::endpwent();
  return another;
}

// The group that useradd and adduser make for each user: of the user's name, and of nobody else.
bool is_own_group(gid_t group) {
  std::vector<char> room(65536);
  passwd user{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &user, room.data(), room.size(), &found) != 0 || found == nullptr ||
      user.pw_gid != group)
    return false;
  const std::string name = user.pw_name;
  struct group entry {};
  struct group* its = nullptr;
  if (::getgrgid_r(group, &entry, room.data(), room.size(), &its) != 0 || its == nullptr ||
      name != entry.gr_name)
    return false;
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  return !is_anothers_group(group, name);
}

// Then the permissions of the group are the most that an entry of the list may give, to whomever.
bool has_access_list(int directory) {
  const auto path = "/proc/self/fd/" + std::to_string(directory);
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

// The group of root counts as root. A user's own group counts as the user: with a umask of 002, which some systems have
// for that reason, all that such a user makes is writable for it.
bool others_may_write(int directory, const struct stat& info) {
  if ((info.st_mode & S_ISVTX) != 0) return false;  // nobody may rename what belongs to others
  if ((info.st_mode & S_IWOTH) != 0) return true;
  if ((info.st_mode & S_IWGRP) == 0) return false;
  return has_access_list(directory) || (info.st_gid != 0 && !is_own_group(info.st_gid));
}

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777U));
  return text.data();
}

/// The way from the root to a directory.
class Walk {
 public:
  Walk(const std::string& path, const std::function<void(const std::string&)>& refuse)
      : refuse_(refuse) {
    ahead(path);
    if (!ahead_.empty()) ahead_.pop_back();
  }

  FileDescriptor go() {
    if (!start()) return {};
    int links = 0;
    while (!ahead_.empty()) {
      const auto name = std::move(ahead_.front());
      ahead_.pop_front();
      FileDescriptor next(::openat(at_.get(), name.c_str(), kFlags));
      if (next) {
        step(std::move(next), name);
        continue;
      }
      const int reason = errno;
      const auto target = reason == ENOTDIR || reason == ELOOP ? follow(name) : std::string();
      if (target.empty() || ++links > kMostLinks) {
        errno = target.empty() ? reason : ELOOP;
        return {};
      }
      ahead(target);
      if (target.starts_with('/') && !start()) return {};
    }
    return std::move(at_);
  }

 private:
  static constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  void ahead(std::string_view path) {
    std::vector<std::string> names;
    for (const auto& name : std::filesystem::path(path).relative_path()) {
      if (!name.empty() && name != ".") names.push_back(name.string());
    }
    ahead_.insert(ahead_.begin(), names.begin(), names.end());
  }

  bool start() {
    FileDescriptor root(::open("/", kFlags));
    if (!root) return false;
    shown_ = "/";
    step(std::move(root), "");
    return true;
  }

  void step(FileDescriptor next, const std::string& name) {
    shown_ = (std::filesystem::path(shown_) / name).lexically_normal().string();
    struct stat info {};
    if (::fstat(next.get(), &info) != 0)
      refuse_("can't be trusted: " + shown_ + " can't be looked at");
    check_owner(info, shown_);
    if (others_may_write(next.get(), info))
      refuse_("can't be trusted: others than its owner can write to " + shown_ + " (mode " +
              octal(info.st_mode) +
              ") above it, and so could put another directory in its place while a lock is held; "
              "use a directory below one "
              "that only you and root can write to, or change that: chmod go-w " +
              shown_);
    at_ = std::move(next);
  }

  // Where a link points to; empty, if it is none.
  std::string follow(const std::string& name) {
    struct stat info {};
    std::array<char, PATH_MAX> target{};
    if (::fstatat(at_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISLNK(info.st_mode))
      return {};
    check_owner(info, (std::filesystem::path(shown_) / name).string());
    const auto size = ::readlinkat(at_.get(), name.c_str(), target.data(), target.size());
    return size <= 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
  }

  void check_owner(const struct stat& info, const std::string& path) const {
    if (is_trusted(info.st_uid)) return;
    refuse_("can't be trusted: " + path + " above it belongs to user " +
            std::to_string(info.st_uid) +
            ", who could put another directory in its place while a lock is held; use a directory "
            "below ones that all "
            "belong to you or to root, or change that: chown -h root " +
            path);
  }

  const std::function<void(const std::string&)>& refuse_;
  FileDescriptor at_;
  std::string shown_;  // where that is
  std::deque<std::string> ahead_;
};

}  // namespace

FileDescriptor open_parent(const std::string& path,
                           const std::function<void(const std::string& why)>& refuse) {
  return Walk(path, refuse).go();
}

}  // namespace interlock::file
