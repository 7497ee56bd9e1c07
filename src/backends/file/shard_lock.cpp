#include "backends/file/shard_lock.hpp"

#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

namespace interlock::file {

namespace {

constexpr int kYields = 4;
constexpr auto kPause = std::chrono::microseconds(20);
constexpr auto kWhile = std::chrono::milliseconds(1);

struct Patience {
  int tries = 0;
  TimePoint end{};

  // False when it has run out.
  bool wait() {
    if (++tries <= kYields) {
      ::sched_yield();
      return true;
    }
    const auto now = BootClock::now();
    if (end == TimePoint{}) end = now + kWhile;
    if (now >= end) return false;
    std::this_thread::sleep_for(kPause);
    return true;
  }
};

// Empty: somebody else holds it.
std::optional<FileDescriptor> lock(const Directory& directory, ShardId id, Access access,
                                   Patience& patience) {
  const auto name = lock_name(id);
  const bool write = access == Access::write;
  for (;;) {
    auto fd = directory.open_file(name, write ? O_RDWR | O_CREAT : O_RDONLY);
    if (!fd) return fd;  // nobody ever wrote here
    while (::flock(fd.get(), (write ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK)
        throw directory.failure("can't lock " + directory.path_of(name), errno);
      if (!patience.wait()) return std::nullopt;
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) {
      throw directory.failure("can't look at " + directory.path_of(name), errno);
    }
    if (!S_ISREG(info.st_mode)) {
      throw Error(Errc::refused, directory.path_of(name) + " is not a regular file; remove it",
                  {.resource = {}, .node = directory.where(), .maybe_held = false});
    }
    if (info.st_nlink > 0) return fd;
    // It was removed meanwhile: a lock on it means nothing.
  }
}

// Each lock is an open file. If there can't be so many, trying again does not help.
void check_descriptors(const Directory& directory, std::size_t locks) {
  constexpr std::size_t kFew = 64;
  rlimit limit{};
  if (locks <= kFew || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || locks < limit.rlim_cur) return;
  throw Error(Errc::refused,
              "a claim on so many names needs " + std::to_string(locks) +
                  " open files, and this process may have " + std::to_string(limit.rlim_cur) +
                  "; raise the limit (ulimit -n)",
              {.resource = {}, .node = directory.where(), .maybe_held = false});
}

}  // namespace

std::optional<ShardLocks> ShardLocks::try_take(const Directory& directory,
                                               std::span<const ShardId> shards, Access access,
                                               ShardId& blocker) {
  check_descriptors(directory, shards.size());
  Patience patience;
  for (;;) {
    ShardLocks locks;
    locks.files_.reserve(shards.size());
    for (const auto id : shards) {
      auto fd = lock(directory, id, access, patience);
      if (!fd) {
        blocker = id;
        return std::nullopt;
      }
      locks.files_.push_back(std::move(*fd));
    }
    // A reader found some never used, and then locked others. If they are still not used, nobody
    // can have changed them together with those.
    bool same = true;
    for (std::size_t i = 0; same && i < shards.size(); ++i) {
      same = locks.files_[i] || !directory.open_file(lock_name(shards[i]), O_RDONLY);
    }
    if (same) return locks;
  }
}

ShardLocks::~ShardLocks() {
  // Not by closing alone: a child that is just being spawned may have the file open, too.
  for (const auto& fd : files_) {
    if (fd) ::flock(fd.get(), LOCK_UN);
  }
}

std::string describe_locker(const Directory& directory, ShardId id) {
  struct stat info {};
  if (::fstatat(directory.fd(), lock_name(id).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    std::array<char, 64> file{};
    std::snprintf(file.data(), file.size(), "%02x:%02x:%llu", major(info.st_dev),
                  minor(info.st_dev), static_cast<unsigned long long>(info.st_ino));
    // "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF", see proc(5)
    std::ifstream locks("/proc/locks");
    for (std::string number, kind, strength, access, pid, where;
         locks >> number >> kind >> strength >> access >> pid >> where;) {
      if (kind == "FLOCK" && where == file.data()) return "process " + pid;
      locks.ignore(4096, '\n');
    }
  }
  return "another process";
}

}  // namespace interlock::file
