#include "backends/postgres/relay.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "interlock/error.hpp"

namespace interlock::postgres {

namespace {

ino_t inode_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool must_wait() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Relay::Relay(int socket) : server_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)) {
  std::array<int, 2> ends{-1, -1};
  const bool paired =
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0;
  libpq_ = FileDescriptor(ends[0]);
  const FileDescriptor other(ends[1]);
  if (!server_ || !paired || ::dup3(other.get(), socket, O_CLOEXEC) < 0)
    throw Error(Errc::unreachable, "no descriptors: " + std::generic_category().message(errno));
  behind_ = inode_of(socket);
}

bool Relay::is_behind(int socket) const noexcept {
  return socket >= 0 && inode_of(socket) == behind_;
}

std::size_t Relay::receive() {
  if (over_) return 0;
  std::array<char, 8192> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto got = ::recv(server_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && must_wait()) return 0;
  // libpq has read what it was given before, so there is room.
  if (got <= 0 || ::send(libpq_.get(), bytes.data(), static_cast<std::size_t>(got),
                         MSG_DONTWAIT | MSG_NOSIGNAL) != got) {
    over_ = true;
    ::shutdown(libpq_.get(), SHUT_WR);
    return 0;
  }
  return static_cast<std::size_t>(got);
}

bool Relay::send() {
  for (;;) {
    if (out_begin_ == out_end_) {
      const auto got = ::recv(libpq_.get(), out_.data(), out_.size(), MSG_DONTWAIT);
      if (got <= 0) return true;
      out_begin_ = 0;
      out_end_ = static_cast<std::size_t>(got);
    }
    const auto put = ::send(server_.get(), out_.data() + out_begin_, out_end_ - out_begin_,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && must_wait()) return false;
    if (put < 0) return true;  // the server is gone, which shows when libpq reads
    out_begin_ += static_cast<std::size_t>(put);
  }
}

}  // namespace interlock::postgres
