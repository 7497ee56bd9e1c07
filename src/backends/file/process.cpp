#include "backends/file/process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <csignal>

#include <array>
#include <cerrno>
#include <charconv>

#include "interlock/error.hpp"

namespace interlock::file {

namespace {

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::size_t read_some(const char* path, char* buffer, std::size_t size) {
  const FileDescriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  const auto got = ::read(fd.get(), buffer, size);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::optional<Stat> read_stat(std::int64_t pid) {
  std::array<char, 1024> buffer{};
  const auto path = "/proc/" + std::to_string(pid) + "/stat";
  return parse_stat({buffer.data(), read_some(path.c_str(), buffer.data(), buffer.size())});
}

}  // namespace

// 20 is the number of threads, 22 the start time.
std::optional<Stat> parse_stat(std::string_view text) {
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  Stat stat{.state = text[0]};
  for (int field = 3; field <= 22; ++field) {
    const auto end = text.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    if (field == 20) stat.threads = number(text.substr(0, end));
    if (field == 22) stat.born = number(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return stat;
}

std::string boot_id() {
  std::array<char, 64> buffer{};
  const auto size = read_some("/proc/sys/kernel/random/boot_id", buffer.data(), buffer.size());
  std::string id(buffer.data(), size);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.empty()) {
    throw Error(Errc::refused,
                "/proc/sys/kernel/random/boot_id can't be read, so records from before a reboot "
                "could not be told; is /proc mounted?");
  }
  return id;
}

std::uint64_t pid_realm() noexcept {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

std::uint64_t start_time(std::int64_t pid) noexcept {
  const auto stat = read_stat(pid);
  return stat ? stat->born : 0;
}

bool has_ended(const Process& process) noexcept {
  if (process.pid <= 0) return false;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  const auto stat = read_stat(process.pid);
  if (!stat) return false;
  if (process.born != 0 && stat->born != process.born) return true;
  // A main thread that has ended looks like a zombie, too, while others go on.
  return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

FileDescriptor watch_process(const Process& process) noexcept {
#ifdef SYS_pidfd_open
  return FileDescriptor(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
#else
  return {};
#endif
}

}  // namespace interlock::file
