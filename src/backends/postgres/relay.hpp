// Stands between libpq and its socket, and counts. By itself, libpq reads as long as the server sends, into a
// buffer of the size that the server announces. From the relay it gets a few kilobytes at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

#include "core/file_descriptor.hpp"

namespace interlock::postgres {

/// Not thread-safe.
class Relay {
 public:
  /// libpq's descriptor leads to the relay from now on. Throws Error (unreachable).
  explicit Relay(int socket);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  /// Sends what can be sent at once.
  ~Relay() { (void)send(); }

  /// libpq may have closed its descriptor, and be connecting with another of the same number.
  [[nodiscard]] bool is_behind(int socket) const noexcept;
  /// The server's, to poll.
  [[nodiscard]] int fd() const noexcept { return server_.get(); }

  /// Some bytes from the server to libpq: how many; none, if `over`, or if there are none now.
  std::size_t receive();
  /// The server has ended the connection, and libpq can read that.
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// True if the server was sent all that libpq has written.
  bool send();

 private:
  FileDescriptor server_;
  FileDescriptor libpq_;
  ino_t behind_ = 0;
  bool over_ = false;
  std::array<char, 8192> out_{};
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

}  // namespace interlock::postgres
