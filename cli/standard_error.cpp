#include "standard_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "descriptor.hpp"

namespace cli {

namespace {

/// What stderr is. O_NONBLOCK can't be set on the descriptor itself: the command and the caller share it.
class ErrorOutput {
 public:
  ErrorOutput() {
    struct stat status {};
    if (::fstat(STDERR_FILENO, &status) != 0) return;
    socket_ = S_ISSOCK(status.st_mode);
    // A descriptor of our own, that does not block. A file has one position for all, so it stays as it is.
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
    own_ = Descriptor(
        ::open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }

  [[nodiscard]] int fd() const { return own_ ? own_.get() : STDERR_FILENO; }
  /// After poll() has said that there is room: for so many bytes, a pipe has.
  [[nodiscard]] ssize_t write(std::string_view text) const {
    const auto size = std::min<std::size_t>(text.size(), PIPE_BUF);
    if (socket_) return ::send(STDERR_FILENO, text.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return ::write(fd(), text.data(), size);
  }

 private:
  Descriptor own_;
  bool socket_ = false;
};

}  // namespace

bool write_error(std::string_view text, std::chrono::milliseconds patience) {
  using std::chrono::steady_clock;
  const ErrorOutput output;
  const auto end = steady_clock::now() + patience;
  while (!text.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now()).count();
    pollfd room{.fd = output.fd(), .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&room, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    // A pipe without a reader: writing to it would end us with SIGPIPE.
    if (ready > 0 && (room.revents & (POLLERR | POLLNVAL)) != 0) return false;
    const auto written = ready < 0 ? 0 : output.write(text);
    if (written < 0 && (errno != EAGAIN || left <= 0)) return false;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

}  // namespace cli
