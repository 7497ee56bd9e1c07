#include "backends/redis/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace interlock::redis {

namespace {

std::string reason(int number) { return std::generic_category().message(number); }

io::Address to_address(const std::string& path, const std::string& name) {
  io::Address found;
  auto* address = reinterpret_cast<sockaddr_un*>(&found.storage);
  if (path.size() >= sizeof(address->sun_path)) {
    throw Error(Errc::invalid, "the path of the Unix socket is too long",
                {.resource = {}, .node = name, .maybe_held = false});
  }
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path.c_str(), path.size() + 1);
  found.size = sizeof(sockaddr_un);
  return found;
}

void set(int fd, int level, int option, int value) {
  (void)::setsockopt(fd, level, option, &value, sizeof(value));
}

}  // namespace

Socket::Socket(const Endpoint& endpoint, const Access& access)
    : name_(endpoint.to_string()), endpoint_(endpoint), access_(access), tls_(nullptr, SSL_free) {
  if (endpoint.socket.empty()) {
    resolution_.emplace(endpoint.host, endpoint.port);
    (void)resolve();
  } else {
    addresses_.push_back(to_address(endpoint.socket, name_));
    begin();
  }
}

/// True when the addresses are known; it begins with them then.
bool Socket::resolve() {
  try {
    wants_ = POLLIN;
    auto found = resolution_->take();
    if (!found) return false;
    addresses_ = std::move(*found);
  } catch (const Error& error) {
    fail(error.message());
  }
  resolution_.reset();
  begin();
  return true;
}

// With the first of the addresses that takes us.
void Socket::begin() {
  for (;; ++at_) {
    const auto& address = addresses_.at(at_);
    tls_.reset();
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) fail("no socket: " + reason(errno));
    if (endpoint_.socket.empty()) {
      set(fd_, IPPROTO_TCP, TCP_NODELAY, 1);
      // A peer that is gone without a word is noticed.
      set(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
      set(fd_, IPPROTO_TCP, TCP_KEEPIDLE, 5);
      set(fd_, IPPROTO_TCP, TCP_KEEPINTVL, 2);
      set(fd_, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
    wants_ = POLLOUT;
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 ||
        errno == EINPROGRESS) {
      break;
    }
    if (at_ + 1 < addresses_.size()) continue;
    const auto why = reason(errno);
    ::close(std::exchange(fd_, -1));
    fail(why);
  }
  if (!access_.tls) return;
  tls_.reset(SSL_new(access_.tls->context()));
  const auto& host = access_.server_name.empty() ? endpoint_.host : access_.server_name;
  in6_addr numeric{};
  const bool is_address = inet_pton(AF_INET, host.c_str(), &numeric) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), &numeric) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str());
  } else {
    SSL_set_tlsext_host_name(tls_.get(), host.c_str());
    SSL_set1_host(tls_.get(), host.c_str());
  }
  BIO* stream = BIO_new(access_.tls->stream());
  BIO_set_fd(stream, fd_, BIO_NOCLOSE);
  SSL_set_bio(tls_.get(), stream, stream);
}

Socket::~Socket() {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
}

void Socket::fail(const std::string& what) const {
  throw Error(Errc::unreachable, what, {.resource = {}, .node = name_, .maybe_held = false});
}

bool Socket::connect() {
  if (open_) return true;
  if (resolution_ && !resolve()) return false;
  if (!connected_) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      if (++at_ == addresses_.size()) fail(reason(error));
      begin();
      return false;
    }
    connected_ = true;
    if (!tls_) {
      // From here on each call says whether it may sleep.
      const timeval soon{.tv_sec = 0, .tv_usec = 2000};
      (void)::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
      (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
    }
  }
  wants_ = 0;
  open_ = !tls_ || shake_hands();
  return open_;
}

bool Socket::shake_hands() {
  ERR_clear_error();
  const int result = SSL_connect(tls_.get());
  if (result == 1) {
    wants_ = 0;
    return true;
  }
  if (const auto verdict = SSL_get_verify_result(tls_.get()); verdict != X509_V_OK) {
    throw Error(Errc::refused,
                std::string("the server's certificate does not check: ") +
                    X509_verify_cert_error_string(verdict),
                {.resource = {}, .node = name_, .maybe_held = false});
  }
  tls_wants(result, "TLS");
  return false;
}

void Socket::tls_wants(int result, const char* what) {
  const int number = errno;
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_ = POLLIN;
      return;
    case SSL_ERROR_WANT_WRITE:
      wants_ = POLLOUT;
      return;
    case SSL_ERROR_ZERO_RETURN:
      fail("the server closed the connection");
    case SSL_ERROR_SYSCALL:
      fail(std::string(what) + ": " +
           (number != 0 ? reason(number) : std::string("the server closed the connection")));
    default: {
      std::array<char, 256> text{};
      ERR_error_string_n(ERR_get_error(), text.data(), text.size());
      fail(std::string(what) + ": " + text.data());
    }
  }
}

std::size_t Socket::read(char* to, std::size_t most) {
  if (tls_) {
    ERR_clear_error();
    const int got = SSL_read(tls_.get(), to, static_cast<int>(most));
    wants_ = 0;
    if (got > 0) return static_cast<std::size_t>(got);
    tls_wants(got, "reading");
    return 0;
  }
  return received(::recv(fd_, to, most, MSG_DONTWAIT));
}

std::size_t Socket::read_soon(char* to, std::size_t most) {
  return received(::recv(fd_, to, most, 0));
}

std::size_t Socket::received(ssize_t got) const {
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) fail("the server closed the connection");
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail("reading: " + reason(errno));
}

bool Socket::has_more() const noexcept { return tls_ && SSL_pending(tls_.get()) > 0; }

std::size_t Socket::write(const char* from, std::size_t size) {
  if (tls_) {
    ERR_clear_error();
    const int put =
        SSL_write(tls_.get(), from, static_cast<int>(std::min(size, std::size_t{1} << 20U)));
    wants_ = 0;
    if (put > 0) return static_cast<std::size_t>(put);
    tls_wants(put, "writing");
    return 0;
  }
  const auto put = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put >= 0) return static_cast<std::size_t>(put);
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail("writing: " + reason(errno));
}

}  // namespace interlock::redis
