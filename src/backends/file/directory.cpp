#include "backends/file/directory.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "backends/file/ancestors.hpp"
#include "core/text.hpp"

namespace interlock::file {

namespace {

constexpr const char* kWakeDirectory = "wake";
constexpr const char* kElsewhere = "; name a directory where you may write";
constexpr mode_t kOwnersRights = 0700;

struct FileSystem {
  std::uint32_t magic;
  const char* name;
};

// Where several hosts can see one directory, from linux/magic.h and the projects' own sources.
constexpr std::array kNetworkFileSystems{
    FileSystem{0x6969, "NFS"},
    FileSystem{0x517B, "SMB"},
    FileSystem{0xFF534D42, "CIFS"},
    FileSystem{0xFE534D42, "SMB2"},
    FileSystem{0x01021997, "9p"},
    FileSystem{0x5346414F, "AFS"},
    FileSystem{0x6B414653, "AFS"},
    FileSystem{0x73757245, "Coda"},
    FileSystem{0x00C36400, "Ceph"},
    FileSystem{0x65735546, "FUSE"},
    FileSystem{0x0BD00BD0, "Lustre"},
    FileSystem{0x47504653, "GPFS"},
    FileSystem{0x7461636F, "OCFS2"},
    FileSystem{0x01161970, "GFS2"},
    FileSystem{0x564C, "NCP"},
    FileSystem{0x19830326, "BeeGFS"},
    FileSystem{0xAAD7AAEA, "PanFS"},
    FileSystem{0xBACBACBC, "VMware shared folders"},
    FileSystem{0x786F4256, "VirtualBox shared folders"},
};

const char* network_file_system(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return nullptr;
  const auto magic = static_cast<std::uint32_t>(info.f_type);
  const auto* const found =
      std::find_if(kNetworkFileSystems.begin(), kNetworkFileSystems.end(),
                   [&](const FileSystem& known) { return known.magic == magic; });
  return found == kNetworkFileSystems.end() ? nullptr : found->name;
}

// Gives the owner of a file or directory the rights that the umask of its maker has taken. False: nothing was changed,
// and errno is as it was. Nobody else can replace what is ours, so following a link is no danger.
bool restore_rights(int directory, const char* name) {
  const int reason = errno;
  struct stat info {};
  const bool ours = ::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)) && info.st_uid == ::geteuid();
  const mode_t wanted = S_ISDIR(info.st_mode) ? kOwnersRights : kOwnersRights & 0666U;
  const bool done = ours && (info.st_mode & wanted) != wanted &&
                    ::fchmodat(directory, name, (info.st_mode & 07777U) | wanted, 0) == 0;
  errno = reason;
  return done;
}

// Without a slash at the end: it would make open(2) follow a link.
std::string cleaned(const std::filesystem::path& path) {
  auto clean = std::filesystem::absolute(path).lexically_normal();
  if (!clean.has_filename() && clean.has_parent_path()) clean = clean.parent_path();
  return clean.string();
}

std::string as_url(const std::string& path) {
  std::string url = "file://";
  for (std::size_t begin = 0; begin < path.size();) {
    const auto slash = std::min(path.find('/', begin), path.size());
    url += percent_encode(path.substr(begin, slash - begin));
    if (slash < path.size()) url += '/';
    begin = slash + 1;
  }
  return url;
}

}  // namespace

Directory::Directory(const std::filesystem::path& path, bool allow_network_file_system,
                     Unopened /*unopened*/)
    : path_(cleaned(path)),
      where_(as_url(path_)),
      allow_network_file_system_(allow_network_file_system) {}

Directory::Directory(const std::filesystem::path& path, bool allow_network_file_system)
    : Directory(path, allow_network_file_system, Unopened{}) {
  auto opened = open();
  fd_ = std::move(opened.directory);
  wake_fd_ = std::move(opened.wake);
}

void Directory::check_can_be_made(const std::filesystem::path& path,
                                  bool allow_network_file_system) {
  const Directory directory(path, allow_network_file_system, Unopened{});
  const auto above = directory.open_above();
  directory.refuse_network(above.get());
  if (::faccessat(above.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    throw directory.failure("can't make the directory " + directory.path_, errno);
}

Directory::Opened Directory::open() const {
  auto directory = open_directory();
  struct stat info {};
  if (::fstat(directory.get(), &info) != 0) throw failure("can't look at " + path_, errno);
  if (info.st_uid != ::geteuid()) {
    refuse("belongs to user " + std::to_string(info.st_uid) + " and not to user " +
           std::to_string(::geteuid()) + ", who asks; use a directory of your own");
  }
  if ((info.st_mode & 077U) != 0) {
    refuse(
        "is open to other users; name one that does not exist yet, or, if this one is for locks "
        "alone: chmod 700 " +
        path_);
  }
  refuse_network(directory.get());
  // A umask may take rights from their owner when directories are made. On a read-only file system it stays so.
  if ((info.st_mode & kOwnersRights) != kOwnersRights)
    (void)::fchmod(directory.get(), info.st_mode | kOwnersRights);
  if (::mkdirat(directory.get(), kWakeDirectory, kOwnersRights) != 0 && errno != EEXIST &&
      errno != ENOSPC && errno != EROFS && errno != EDQUOT) {
    throw failure("can't make " + path_of(kWakeDirectory), errno);
  }
  restore_rights(directory.get(), kWakeDirectory);
  // systemd-tmpfiles deletes old files below /var/tmp, and our lock files look old, as they are never
  // written. It leaves out a directory that is locked.
  (void)::flock(directory.get(), LOCK_SH | LOCK_NB);
  // Without it, nobody can ring us: then waiters ask more often.
  FileDescriptor wake(
      ::openat(directory.get(), kWakeDirectory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return {std::move(directory), std::move(wake)};
}

void Directory::refuse_network(int fd) const {
  const char* name = network_file_system(fd);
  if (name == nullptr || allow_network_file_system_) return;
  refuse(std::string("is on a network file system (") + name +
         "), where neither flock nor process ids mean the same to everybody; use a local "
         "directory, or insist with ?network=allow");
}

FileDescriptor Directory::open_above() const {
  auto parent = open_parent(path_, [this](const std::string& why) { refuse(why); });
  if (parent) return parent;
  const int reason = errno;
  const auto above = path_.substr(0, path_.rfind('/'));
  if (reason == ENOENT) {
    throw Error(Errc::refused,
                "the directory " + above + " does not exist; make it: mkdir -p " + above,
                {.resource = {}, .node = where_, .maybe_held = false});
  }
  throw failure("can't open the directory " + path_, reason);
}

FileDescriptor Directory::open_directory() const {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const auto name = path_.size() > 1 ? path_.substr(path_.rfind('/') + 1) : ".";
  const auto parent = open_above();
  FileDescriptor fd(::openat(parent.get(), name.c_str(), flags));
  if (!fd && errno == EACCES && restore_rights(parent.get(), name.c_str()))
    fd = FileDescriptor(::openat(parent.get(), name.c_str(), flags));
  if (!fd && errno == ENOENT) {
    // The last one only: whoever mistypes a path should hear of it, and not lock by himself.
    if (::mkdirat(parent.get(), name.c_str(), kOwnersRights) != 0 && errno != EEXIST) {
      const int reason = errno;
      const auto error = failure("can't make the directory " + path_, reason);
      if (reason != ENOENT) throw error;
      // /proc says that nothing is there, and means that nothing can be made there.
      throw Error(error.errc(), error.message() + kElsewhere,
                  {.resource = {}, .node = where_, .maybe_held = false});
    }
    restore_rights(parent.get(), name.c_str());
    fd = FileDescriptor(::openat(parent.get(), name.c_str(), flags));
  }
  if (fd) return fd;
  const int reason = errno;
  struct stat info {};
  if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode)) {
    refuse("is a symbolic link, which somebody could turn; use the directory it points to");
  }
  throw failure("can't open the directory " + path_, reason);
}

FileDescriptor Directory::open_file(const std::string& name, int flags) const {
  // O_NONBLOCK: whatever stands in the file's place must not hold us up.
  const auto open = [&] {
    return FileDescriptor(
        ::openat(fd_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  };
  auto fd = open();
  if (!fd && errno == EACCES && restore_rights(fd_.get(), name.c_str())) fd = open();
  if (!fd) {
    if (errno == ENOENT) {
      if ((flags & O_CREAT) == 0) return fd;
      throw DirectoryRemoved{};
    }
    if (errno == ELOOP) {
      throw Error(Errc::refused,
                  path_of(name) + " is a symbolic link; it is not ours: look at it and remove it",
                  {.resource = {}, .node = where_, .maybe_held = false});
    }
    throw failure("can't open " + path_of(name), errno);
  }
  return fd;
}

bool Directory::restore() {
  const std::lock_guard lock(restoring_);
  struct stat ours {};
  struct stat there {};
  if (::fstat(fd_.get(), &ours) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
    return false;
  }
  const auto opened = open();
  // In place, so that other threads go on with the same numbers.
  if (::dup3(opened.directory.get(), fd_.get(), O_CLOEXEC) < 0) {
    throw failure("can't open the directory again", errno);
  }
  if (opened.wake && wake_fd_) ::dup3(opened.wake.get(), wake_fd_.get(), O_CLOEXEC);
  ++generation_;
  return true;
}

Error Directory::failure(const std::string& what, int error_number) const {
  const Error::Where where{.resource = {}, .node = where_, .maybe_held = false};
  const auto reason = std::generic_category().message(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return {Errc::refused,
              what + ": disk full (" + reason + "); nothing was changed; make room and ask again",
              where};
    case EMFILE:
    case ENFILE:
      return {Errc::unreachable, what + ": " + reason + "; raise the limit (ulimit -n)", where};
    case ENOMEM:
    case EAGAIN:
    case EINTR:
      return {Errc::unreachable, what + ": " + reason, where};
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
      return {Errc::refused, what + ": " + reason + kElsewhere, where};
    default:
      return {Errc::refused, what + ": " + reason, where};
  }
}

void Directory::refuse(const std::string& why) const {
  throw Error(Errc::refused, "the directory " + path_ + " " + why,
              {.resource = {}, .node = where_, .maybe_held = false});
}

}  // namespace interlock::file
