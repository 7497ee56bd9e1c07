#include "backends/file/shard_file.hpp"

#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>

namespace interlock::file {

namespace {

constexpr std::size_t kBlock = 4096;

std::size_t whole_blocks(std::size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

struct stat look_at(const Directory& directory, int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    throw directory.failure("can't look at " + directory.path_of(name), errno);
  if (!S_ISREG(info.st_mode)) {
    throw Error(Errc::refused, directory.path_of(name) + " is not a regular file; remove it",
                {.resource = {}, .node = directory.where(), .maybe_held = false});
  }
  return info;
}

bool exchange(int directory, const std::string& a, const std::string& b) {
  return ::syscall(SYS_renameat2, directory, a.c_str(), directory, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

ShardFile::ShardFile(const Directory& directory, ShardId id) : directory_(directory), id_(id) {
  const auto name = data_name(id);
  const auto fd = directory.open_file(name, O_RDONLY);
  if (!fd) return;
  exists_ = true;
  const auto info = look_at(directory, fd.get(), name);
  allocated_ = static_cast<std::size_t>(info.st_blocks) * 512;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > kMostBytes)
    throw corrupt("it has more than " + std::to_string(kMostBytes >> 20U) + " MiB");
  content_.resize(size);
  for (std::size_t done = 0; done < size;) {
    const auto got =
        ::pread(fd.get(), content_.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw directory.failure("can't read " + directory.path_of(name), errno);
    if (got == 0) throw corrupt("it became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
}

void ShardFile::prepare(const std::string& content) {
  if (content.size() > kMostBytes) {
    throw Error(
        Errc::refused,
        directory_.path_of(data_name(id_)) + " would have more than " +
            std::to_string(kMostBytes >> 20U) +
            " MiB: too many hold or wait for its locks; nothing was changed, ask again later",
        {.resource = {}, .node = directory_.where(), .maybe_held = false});
  }
  if (content.size() > content_.size() || !exists_) reserve(content.size());
  const auto name = spare_name(id_);
  const auto fd = directory_.open_file(name, O_RDWR | O_CREAT);
  const auto info = look_at(directory_, fd.get(), name);
  for (std::size_t done = 0; done < content.size();) {
    const auto put =
        ::pwrite(fd.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw directory_.failure("can't write " + directory_.path_of(name), errno);
    done += static_cast<std::size_t>(put);
  }
  const auto size = static_cast<off_t>(content.size());
  if (info.st_size > size && ::ftruncate(fd.get(), size) != 0) {
    throw directory_.failure("can't shorten " + directory_.path_of(name), errno);
  }
}

// The file that is the spare after the next swap gets the blocks that it will need then.
void ShardFile::reserve(std::size_t size) const {
  if (exists_ && whole_blocks(size) <= allocated_) return;
  const auto name = data_name(id_);
  const auto fd = directory_.open_file(name, O_WRONLY | O_CREAT);
  const auto length = static_cast<off_t>(whole_blocks(size));
  if (::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, length) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    throw directory_.failure("can't reserve room for " + directory_.path_of(name), errno);
  }
}

void ShardFile::replace() {
  const auto spare = spare_name(id_);
  const auto name = data_name(id_);
  exchanged_ = exchange(directory_.fd(), spare, name);
  if (exchanged_) return;
  // Not every file system can exchange.
  if ((errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) &&
      ::renameat(directory_.fd(), spare.c_str(), directory_.fd(), name.c_str()) == 0) {
    return;
  }
  throw directory_.failure("can't replace " + directory_.path_of(name), errno);
}

void ShardFile::undo() noexcept try {
  if (!exchanged_) prepare(content_);
  replace();
} catch (const Error&) {  // NOLINT(bugprone-empty-catch)
  // What is left is a record of an owner that was told nothing: its TTL ends it.
}

Error ShardFile::corrupt(const std::string& why) const {
  return {Errc::corrupt,
          directory_.path_of(data_name(id_)) + " can't be read: " + why +
              "; to set it aside: interlock repair --url " + directory_.where(),
          {.resource = {}, .node = directory_.where(), .maybe_held = false}};
}

Error ShardFile::unreadable(const Error& why) const {
  if (why.errc() != Errc::refused) return corrupt(why.message());
  return {Errc::refused,
          directory_.path_of(data_name(id_)) + " can't be used: " + why.message() +
              ". When no program of that version uses the directory any more, remove the file",
          {.resource = {}, .node = directory_.where(), .maybe_held = false}};
}

void ReadLimit::add(const ShardFile& file) {
  read_ += file.content().size();
  if (read_ <= kMost) return;
  throw Error(Errc::refused,
              "the files that are needed together have more than " + std::to_string(kMost >> 20U) +
                  " MiB; ask for fewer names",
              {.resource = {}, .node = file.where(), .maybe_held = false});
}

std::vector<ShardId> existing_shards(const Directory& directory) {
  std::vector<ShardId> ids;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd/" + std::to_string(directory.fd()))) {
    const auto name = entry.path().filename().string();
    unsigned id = 0;
    const auto* const end = name.data() + std::min<std::size_t>(name.size(), 3);
    if (std::from_chars(name.data(), end, id, 16).ptr != end) continue;
    const auto shard = static_cast<ShardId>(id);
    // Not by the data files alone: while they are exchanged, a listing may miss their names.
    if (name == lock_name(shard) || name == data_name(shard)) ids.push_back(shard);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace interlock::file
