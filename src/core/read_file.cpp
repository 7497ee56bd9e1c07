#include "core/read_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "core/file_descriptor.hpp"

namespace interlock::core {

namespace {

constexpr int kPatience = 5000;  // milliseconds, for whoever writes into a pipe

}  // namespace

std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check,
                                     std::size_t most, Links links) {
  const auto fail = [&](int error) {
    throw std::system_error(error, std::generic_category(), path.string());
  };
  // Without O_NONBLOCK, opening a FIFO would wait for somebody to write into it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY |
                                                     (links == Links::refused ? O_NOFOLLOW : 0)));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail(errno);
  }
  if (check) check(file.get());
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto size = ::read(file.get(), buffer.data(), buffer.size());
    if (size == 0) return bytes;
    if (size > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(size));
      if (bytes.size() > most) fail(EFBIG);
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = file.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, kPatience) == 0) fail(ETIMEDOUT);
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

}  // namespace interlock::core
