#include "http_server.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <system_error>
#include <vector>

#include "command.hpp"

namespace cli {

namespace {

constexpr std::size_t kMostPeers = 64;
constexpr std::size_t kMostUnsent = 8UL << 20U;             // to others, before one more answer
constexpr std::size_t kSmall = 64UL << 10U;                 // is always answered
constexpr auto kPatience = std::chrono::seconds(5);         // for one request and its answer
constexpr auto kGrace = std::chrono::seconds(20);           // for one who is not silent
constexpr auto kBreather = std::chrono::milliseconds(500);  // when there are no descriptors left
constexpr auto kGoodbye = std::chrono::milliseconds(500);   // for the rest of what was sent

struct Address {
  std::string host;
  std::string port;
};

Address parse(const std::string& where) {
  const auto colon = where.rfind(':');
  Address address{"127.0.0.1", where};
  if (colon != std::string::npos) {
    address = {where.substr(0, colon), where.substr(colon + 1)};
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
      address.host = address.host.substr(1, address.host.size() - 2);
    }
  }
  std::uint16_t number = 0;
  const auto* end = address.port.data() + address.port.size();
  const auto [last, error] = std::from_chars(address.port.data(), end, number);
  if (error != std::errc{} || last != end || address.host.empty()) {
    throw UsageError("\"" + where + "\" is no address to listen at; give a port, or HOST:PORT: " +
                     "7450, 0.0.0.0:7450, [::1]:7450");
  }
  return address;
}

Descriptor listen_at(const Address& address, const std::string& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (error != 0) {
    throw UsageError("can't listen at " + where + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Descriptor fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), 64) != 0) {
    const int why = errno;
    throw Failure(kSystem,
                  "can't listen at " + address.host + ":" + address.port + ": " +
                      std::generic_category().message(why) +
                      (why == EADDRINUSE ? "; stop what listens there, or give another port" : ""));
  }
  return fd;
}

std::string url_of(int fd, const std::string& host) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  // The port is at the same place for IPv4 and IPv6.
  const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  return "http://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
         std::to_string(port);
}

}  // namespace

HttpServer::HttpServer(const std::string& where, HttpHandler handler)
    : handler_(std::move(handler)) {
  const auto address = parse(where);
  listener_ = listen_at(address, where);
  url_ = url_of(listener_.get(), address.host);
}

void HttpServer::run(int until) {
  for (;;) {
    const bool accepts = accepts_from_ <= Clock::now();
    std::vector<pollfd> fds{{.fd = until, .events = POLLIN, .revents = 0},
                            {.fd = accepts ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
    auto first = accepts ? Clock::time_point::max() : accepts_from_;
    for (const auto& peer : peers_) {
      first = std::min(first, peer.deadline);
      const short events = peer.stage == Stage::writing ? POLLOUT : POLLIN;
      fds.push_back({.fd = peer.fd.get(), .events = events, .revents = 0});
    }
    int pause = -1;
    if (first != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now());
      pause = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    ::poll(fds.data(), fds.size(), pause);
    if (fds[0].revents != 0) return;
    // As of now: nobody is late because another one's answer takes its time. But whoever always has
    // something to say does not stay for ever.
    const auto now = Clock::now();
    auto polled = fds.begin() + 2;
    for (auto peer = peers_.begin(); peer != peers_.end(); ++polled) {
      const bool stays = polled->revents != 0 ? peer->deadline + kGrace > now && serve(*peer)
                                              : peer->deadline > now;
      peer = stays ? std::next(peer) : peers_.erase(peer);
    }
    if (fds[1].revents != 0) accept();
  }
}

void HttpServer::accept() {
  if (peers_.size() >= kMostPeers) make_room();
  Descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) {
    peers_.push_back({.fd = std::move(fd), .deadline = Clock::now() + kPatience});
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    // It is still there to be accepted.
    if (!peers_.empty()) make_room();
    accepts_from_ = Clock::now() + kBreather;
  }
}

// The oldest of those who have not asked yet goes; if all have, the oldest.
void HttpServer::make_room() {
  const auto silent = std::find_if(peers_.begin(), peers_.end(),
                                   [](const Peer& peer) { return peer.stage == Stage::reading; });
  peers_.erase(silent != peers_.end() ? silent : peers_.begin());
}

bool HttpServer::serve(Peer& peer) {
  switch (peer.stage) {
    case Stage::reading:
      return read(peer);
    case Stage::writing:
      return write(peer);
    case Stage::draining:
      return drain(peer);
  }
  return false;
}

bool HttpServer::read(Peer& peer) {
  std::array<char, 4096> buffer{};
  const auto got = ::recv(peer.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  peer.request.append(buffer.data(), static_cast<std::size_t>(got));
  auto response = http_answer(peer.request, handler_);
  if (!response) return true;
  const auto size = response->capacity();
  const bool crowded = size > kSmall && unsent() > kMostUnsent;
  peer.response = crowded ? http_refusal(503) : std::move(*response);
  peer.stage = Stage::writing;
  return write(peer);
}

// The memory of answers that slow readers have not taken yet, and of this one.
std::size_t HttpServer::unsent() const {
  std::size_t sum = 0;
  for (const auto& peer : peers_) sum += peer.response.capacity();
  return sum;
}

bool HttpServer::write(Peer& peer) {
  const auto put = ::send(peer.fd.get(), peer.response.data(), peer.response.size(), MSG_NOSIGNAL);
  if (put < 0) return errno == EAGAIN || errno == EINTR;
  peer.response.erase(0, static_cast<std::size_t>(put));
  if (!peer.response.empty()) return true;
  peer.response.shrink_to_fit();
  // If we closed while something unread is there, the system would throw our answer away.
  ::shutdown(peer.fd.get(), SHUT_WR);
  peer.stage = Stage::draining;
  peer.deadline = std::min(peer.deadline, Clock::now() + kGoodbye);
  return true;
}

bool HttpServer::drain(Peer& peer) {
  std::array<char, 4096> buffer{};
  const auto got = ::recv(peer.fd.get(), buffer.data(), buffer.size(), 0);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace cli
