// The directory that a file store lives in.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>

#include "core/file_descriptor.hpp"
#include "interlock/error.hpp"

namespace interlock::file {

/// Thrown when something can't be made because the directory is not there any more: `restore` it,
/// and try again.
struct DirectoryRemoved {};

/// Ours alone, on a local disk, no symbolic link, and below directories that nobody else can rename; everything in it is opened relative to its
/// descriptor and without following links, so that nobody can put another one in its place
/// unnoticed. Thread-safe.
class Directory {
 public:
  /// Made (0700, whatever the umask) if it is missing, its parents are not. Of what exists, the owner gets back the rights
  /// that a umask has taken. Throws Error (refused) if it is not fit.
  Directory(const std::filesystem::path& path, bool allow_network_file_system);

  /// Throws Error (refused) where a directory that is missing could not be made, and makes nothing.
  static void check_can_be_made(const std::filesystem::path& path, bool allow_network_file_system);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Where the doorbells are: a directory of their own, so that finding them is quick.
  [[nodiscard]] int wake_fd() const noexcept { return wake_fd_.get(); }
  /// Absolute.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  /// As a URL, for errors.
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  /// Opens a regular file in it. `flags` as for open(2); links are never followed. Empty if it does
  /// not exist and O_CREAT was not given. Throws DirectoryRemoved, and Error for everything else.
  [[nodiscard]] FileDescriptor open_file(const std::string& name, int flags) const;

  /// The directory was removed while it was in use: makes it anew, empty. True if that was so.
  bool restore();
  /// Changes when it was made anew.
  [[nodiscard]] unsigned generation() const noexcept { return generation_; }

  /// "what: reason [where]", of the kind that fits `error_number`.
  [[nodiscard]] Error failure(const std::string& what, int error_number) const;

 private:
  struct Opened {
    FileDescriptor directory;
    FileDescriptor wake;
  };
  struct Unopened {};
  Directory(const std::filesystem::path& path, bool allow_network_file_system, Unopened unopened);
  [[nodiscard]] Opened open() const;
  [[nodiscard]] FileDescriptor open_above() const;
  void refuse_network(int fd) const;
  [[nodiscard]] FileDescriptor open_directory() const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  std::string where_;
  bool allow_network_file_system_;
  FileDescriptor fd_;
  FileDescriptor wake_fd_;
  std::mutex restoring_;
  std::atomic<unsigned> generation_{0};
};

}  // namespace interlock::file
