#include "backends/file/repair.hpp"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <thread>

#include "backends/file/process.hpp"
#include "backends/file/shard_file.hpp"
#include "backends/file/shard_lock.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace file {

namespace {

constexpr Duration kPatience = std::chrono::seconds(5);
constexpr const char* kBootFile = "boot";  // in which the store was last opened

std::string read_boot(int fd) {
  std::array<char, 64> buffer{};
  const auto got = ::pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

// What is wrong with it: corrupt, or refused, as it is of another format.
std::optional<Error> fault(const Directory& directory, ShardId id, const std::string& boot) {
  try {
    const ShardFile file(directory, id);
    LockTable table({.next_fence = {}});
    read_shard(file.content(), id, {.boot = boot, .now = BootClock::now()}, table);
    return {};
  } catch (const Error& error) {
    if (error.errc() == Errc::unreachable) throw;
    return error;
  }
}

// The name it has now.
std::string set_aside(const Directory& directory, ShardId id) {
  for (int n = 1;; ++n) {
    auto name = shard_name(id) + ".corrupt-" + std::to_string(n);
    if (::syscall(SYS_renameat2, directory.fd(), data_name(id).c_str(), directory.fd(),
                  name.c_str(), RENAME_NOREPLACE) == 0) {
      return name;
    }
    if (errno != EEXIST) {
      throw directory.failure("can't rename " + directory.path_of(data_name(id)), errno);
    }
  }
}

std::optional<ShardLocks> lock(const Directory& directory, ShardId id) {
  const auto end = BootClock::now() + kPatience;
  for (;;) {
    ShardId blocker = 0;
    auto locks = ShardLocks::try_take(directory, {&id, 1}, Access::write, blocker);
    if (locks || BootClock::now() >= end) return locks;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::vector<std::string> repair(const std::filesystem::path& path, bool dry_run) {
  const Directory directory(path, true);
  const auto boot = boot_id();
  std::vector<std::string> lines;
  std::size_t found = 0;
  const auto shards = existing_shards(directory);
  for (const auto id : shards) {
    const auto name = directory.path_of(data_name(id));
    try {
      const auto locks = lock(directory, id);
      if (!locks) {
        lines.push_back(name + ": skipped, its lock is held by " + describe_locker(directory, id));
        continue;
      }
      const auto why = fault(directory, id, boot);
      if (!why) continue;
      ++found;
      auto& line = lines.emplace_back(name + ": ");
      line += why->message();
      if (why->errc() == Errc::refused) {
        line += "; left as it is";
      } else if (dry_run) {
        line += "; would be set aside";
      } else {
        line += "; set aside as " + set_aside(directory, id);
        line += ". The locks recorded in it count as free now";
      }
    } catch (const Error& error) {
      lines.push_back(name + ": " + error.message());
    }
  }
  lines.push_back(std::to_string(shards.size()) + " files checked, " + std::to_string(found) +
                  " can't be read");
  return lines;
}

void settle_after_boot(const Directory& directory, const std::string& boot) {
  const auto fd = directory.open_file(kBootFile, O_RDWR | O_CREAT);
  if (read_boot(fd.get()) == boot) return;
  for (const auto end = BootClock::now() + kPatience; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (BootClock::now() >= end) return;  // whoever has it does the same
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (read_boot(fd.get()) == boot) return;
  for (const auto id : existing_shards(directory)) {
    try {
      const auto locks = lock(directory, id);
      if (!locks || !fault(directory, id, boot)) continue;
      // A file that names this boot was written in it, whatever became of it then.
      if (ShardFile(directory, id).content().find(boot) == std::string::npos) {
        set_aside(directory, id);
      }
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // Whoever needs this shard is told.
    }
  }
  // Written last, and if it can't be, the next one does all of this again.
  if (::pwrite(fd.get(), boot.data(), boot.size(), 0) > 0) {
    [[maybe_unused]] const int cut = ::ftruncate(fd.get(), static_cast<off_t>(boot.size()));
  }
  ::flock(fd.get(), LOCK_UN);
}

}  // namespace file

std::vector<std::string> repair_file_store(const std::filesystem::path& directory, bool dry_run) {
  return file::repair(directory, dry_run);
}

}  // namespace interlock
