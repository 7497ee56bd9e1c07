#include "core/read_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace interlock::core {

namespace {

constexpr int kPatience = 5000;  // milliseconds, for whoever writes into a pipe

class File {
 public:
  // Without O_NONBLOCK, opening a FIFO would wait for somebody to write into it.
  explicit File(const char* path) : fd_(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check,
                                     std::size_t most) {
  const auto fail = [&](int error) {
    throw std::system_error(error, std::generic_category(), path.string());
  };
  const File file(path.c_str());
  if (file.fd() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail(errno);
  }
  if (check) check(file.fd());
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto size = ::read(file.fd(), buffer.data(), buffer.size());
    if (size == 0) return bytes;
    if (size > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(size));
      if (bytes.size() > most) fail(EFBIG);
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = file.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, kPatience) == 0) fail(ETIMEDOUT);
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

}  // namespace interlock::core
