// A non-blocking stream to a server: TCP or a Unix socket, with or without TLS.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/address.hpp"
#include "core/io/resolution.hpp"

struct ssl_st;

namespace interlock::redis {

/// Not thread-safe.
class Socket {
 public:
  /// Begins to connect. Throws Error (unreachable) if that fails at once.
  Socket(const Endpoint& endpoint, const Access& access);
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  [[nodiscard]] int fd() const noexcept { return resolution_ ? resolution_->fd() : fd_; }
  /// What to poll for, besides what the user of the stream waits for.
  [[nodiscard]] short wants() const noexcept { return wants_; }

  /// Goes on connecting; true when the stream is open. Throws Error (unreachable, or refused for a
  /// certificate that does not check).
  bool connect();

  /// As many bytes as can be had now: 0 if none. Throws Error (unreachable) at the end.
  std::size_t read(char* to, std::size_t most);
  /// The same, but sleeps for some milliseconds at most if there is none yet: one system call instead
  /// of two for whoever is about to be answered. Not with TLS.
  std::size_t read_soon(char* to, std::size_t most);
  [[nodiscard]] bool can_read_soon() const noexcept { return !tls_; }
  /// Bytes that poll does not know of.
  [[nodiscard]] bool has_more() const noexcept;
  std::size_t write(const char* from, std::size_t size);

 private:
  bool resolve();
  void begin();
  [[noreturn]] void fail(const std::string& what) const;
  bool shake_hands();
  [[nodiscard]] std::size_t received(ssize_t got) const;
  /// For a TLS call that did not get on: notes what to wait for, or throws.
  void tls_wants(int result, const char* what);

  std::string name_;
  Endpoint endpoint_;
  Access access_;
  std::optional<io::Resolution> resolution_;  ///< while the host's addresses are not known
  std::vector<io::Address> addresses_;
  std::size_t at_ = 0;  ///< which of them
  int fd_ = -1;
  short wants_ = 0;
  bool connected_ = false;
  bool open_ = false;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
};

}  // namespace interlock::redis
