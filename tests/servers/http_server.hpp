// An HTTP server of the tests' own that keeps what is POSTed to it, and answers as it is told.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace interlock::servers {

/// One connection at a time, on a free port of its own.
class HttpServer {
 public:
  struct Request {
    std::string head;  ///< request line and headers
    std::string body;
  };

  HttpServer() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("the HTTP server can't listen");
    }
    port_ = ntohs(address.sin_port);
    bell_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { run(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_, &one, sizeof one);
    thread_.join();
    ::close(listener_);
    ::close(bell_);
  }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// From now on; 0: it takes the request and never answers.
  void answer(int status, std::string body = "{}") {
    const std::lock_guard lock(mutex_);
    status_ = status;
    answer_ = std::move(body);
  }
  std::vector<Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  // False: it is time to end.
  [[nodiscard]] bool readable(int fd) const {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {bell_, POLLIN, 0}}};
    while (::poll(fds.data(), fds.size(), -1) < 0) {
    }
    return fds[1].revents == 0;
  }

  void run() {
    while (readable(listener_)) {
      const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      std::string data;
      while (readable(peer) && serve(peer, data)) {
      }
      ::close(peer);
    }
  }

  // False: the connection has ended.
  bool serve(int peer, std::string& data) {
    std::array<char, 4096> buffer{};
    const auto got = ::read(peer, buffer.data(), buffer.size());
    if (got <= 0) return false;
    data.append(buffer.data(), static_cast<std::size_t>(got));
    const auto end = data.find("\r\n\r\n");
    if (end == std::string::npos) return true;
    const auto head = data.substr(0, end + 2);
    const auto length = head.find("Content-Length: ");
    const auto size = length == std::string::npos ? 0 : std::stoul(head.substr(length + 16));
    if (data.size() < end + 4 + size) return true;
    const std::lock_guard lock(mutex_);
    requests_.push_back({head, data.substr(end + 4, size)});
    data.erase(0, end + 4 + size);
    if (status_ == 0) return true;
    const auto text = "HTTP/1.1 " + std::to_string(status_) +
                      " So\r\nContent-Length: " + std::to_string(answer_.size()) + "\r\n\r\n" +
                      answer_;
    return ::send(peer, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  int listener_ = -1;
  int bell_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  int status_ = 200;
  std::string answer_ = "{}";
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace interlock::servers
