#include "guardian.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace cli {

Guardian::Guardian(const std::vector<std::string>& command, const Signals& signals) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ours.reset();
    guard(std::move(theirs), command, signals.original_mask());
  }
  ::setpgid(pid_, pid_);  // it does so, too: whoever comes first
  socket_ = std::move(ours);
}

Guardian::~Guardian() {
  socket_.reset();
  ::kill(pid_, SIGCONT);  // it may have been stopped
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::entrust(const std::string& url, const std::string& token) {
  send({.kind = Order::Kind::entrust}, {url, token});
}

void Guardian::start(const Order& order, const std::vector<std::string>& environment) {
  send(order, environment);
}

void Guardian::send(const Order& order, const std::vector<std::string>& texts) {
  std::string packet(reinterpret_cast<const char*>(&order), sizeof order);
  for (const auto& text : texts) packet.append(text).push_back('\0');
  if (packet.size() > kLargestPacket ||
      ::send(fd(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    gone_ = true;
  }
}

void Guardian::send(const Order& order) const {
  // If it is gone, or stopped and its queue is full, next() and the clock will tell.
  [[maybe_unused]] const auto sent =
      ::send(fd(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guardian::forward(int signal) const { send({.kind = Order::Kind::signal, .signal = signal}); }

std::optional<News> Guardian::next() {
  News news{};
  const auto got = ::recv(fd(), &news, sizeof news, MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof news)) return news;
  if (got >= 0 || (errno != EAGAIN && errno != EINTR)) gone_ = true;
  return {};
}

}  // namespace cli
