#include "backends/file/doorbell.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <string_view>

namespace interlock::file {

namespace {

constexpr std::size_t kLine = 33;          // 32 digits and a newline
constexpr std::size_t kLinesAtOnce = 124;  // within PIPE_BUF, so that lines are never mixed
constexpr std::size_t kCapacity = 65536;   // of a pipe, unless the system is short of memory
constexpr std::time_t kNewLasts = 60;      // no client needs that long to hang up its doorbell
constexpr std::string_view kNew = "new-";

std::string bell_name(std::uint64_t home) { return Owner{0, home}.to_string().substr(16); }

int open_to_ring(const Directory& directory, const std::string& name) {
  return ::openat(directory.wake_fd(), name.c_str(),
                  O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

}  // namespace

Doorbell::Doorbell(const Directory& directory)
    : directory_(directory), home_(Owner::random().low | 1U) {}

Doorbell::~Doorbell() {
  if (!fifos_.empty()) ::unlinkat(directory_.wake_fd(), bell_name(home_).c_str(), 0);
}

bool Doorbell::hang(std::atomic<bool>& fresh) {
  const std::lock_guard lock(mutex_);
  const auto generation = directory_.generation();
  if (!fifos_.empty() && generation_ == generation) return true;
  // Opened under another name first: one that nobody listens to would be taken for a leftover.
  const auto name = bell_name(home_);
  const auto before = std::string(kNew) + name;
  const int at = directory_.wake_fd();
  if (::mkfifoat(at, before.c_str(), 0600) != 0) return false;
  // Also for writing, so that it never reads as closed when those who rang have left.
  FileDescriptor fifo(::openat(at, before.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  // A umask may have taken rights that those who ring need.
  if (!fifo || ::fchmod(fifo.get(), 0600) != 0 ||
      ::renameat(at, before.c_str(), at, name.c_str()) != 0) {
    ::unlinkat(at, before.c_str(), 0);
    return false;
  }
  fifos_.push_back(std::move(fifo));
  generation_ = generation;
  fresh = true;
  return true;
}

int Doorbell::fd() const {
  const std::lock_guard lock(mutex_);
  return fifos_.empty() ? -1 : fifos_.back().get();
}

Doorbell::Rings Doorbell::listen() {
  Rings rings;
  std::array<char, kLine * kLinesAtOnce> buffer{};
  std::size_t total = 0;
  for (const int from = fd(); from >= 0;) {
    const auto got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    total += static_cast<std::size_t>(got);
    rest_.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      const std::string_view line(rest_.data() + begin, end - begin);
      if (const auto owner = Owner::parse(line)) rings.owners.push_back(*owner);
      begin = end + 1;
    }
    rest_.erase(0, begin);
    if (rest_.size() > kLine) rest_.clear();  // not ours
  }
  rings.missed = total + PIPE_BUF > kCapacity;
  return rings;
}

void Doorbell::ring(const Directory& directory, std::uint64_t home, std::span<const Owner> owners) {
  // Also for reading: a FIFO whose only reader leaves while we write would kill us with SIGPIPE.
  const FileDescriptor fifo(::openat(directory.wake_fd(), bell_name(home).c_str(),
                                     O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fifo || ::fstat(fifo.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  std::string lines;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    lines += owners[i].to_string();
    lines += '\n';
    if ((i + 1) % kLinesAtOnce != 0 && i + 1 < owners.size()) continue;
    // Full: its client has more than enough to read, and then looks after all of its waiters.
    if (::write(fifo.get(), lines.data(), lines.size()) < 0 && errno != EINTR) return;
    lines.clear();
  }
}

void Doorbell::remove_leftovers(const Directory& directory) {
  const int at = ::openat(directory.wake_fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(at), ::closedir);
  if (!entries) {
    ::close(at);
    return;
  }
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    struct stat info {};
    if (::fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISFIFO(info.st_mode)) continue;
    if (name.starts_with(kNew) && info.st_ctime + kNewLasts > std::time(nullptr)) continue;
    const FileDescriptor fifo(open_to_ring(directory, name));
    if (!fifo && errno == ENXIO) ::unlinkat(at, name.c_str(), 0);
  }
}

}  // namespace interlock::file
