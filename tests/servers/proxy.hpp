// A TCP proxy in front of a server of the tests' own, for what goes wrong on the way: connections
// that are cut, also in mid-command or in mid-reply, replies that never arrive, single messages
// that get lost.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace interlock::servers {

/// Listens on a free port of its own. Any thread may give orders; they hold from then on, for all
/// connections.
class Proxy {
 public:
  explicit Proxy(int server_port) : server_port_(server_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(0);
    socklen_t size = sizeof(address);
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("the proxy can't listen");
    }
    port_ = ntohs(address.sin_port);
    bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { run(); });
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy() {
    order([this] { stop_ = true; });
    thread_.join();
    for (const auto& pair : pairs_) close_both(pair);
    ::close(listener_);
    ::close(bell_);
  }

  [[nodiscard]] int port() const noexcept { return port_; }

  enum Way : std::uint8_t { to_server, to_client };

  /// Cuts all connections now.
  void cut() {
    order([this] {
      for (auto& pair : pairs_) pair.over = true;
    });
  }
  /// Lets so many more bytes pass this way, in all, then cuts that connection; once.
  void cut_after(Way way, std::uint64_t bytes) {
    order([&] { rules_.at(way).left = bytes; });
  }
  /// Cuts the connection on which this text is about to pass this way; once. The text does not.
  void cut_at(Way way, std::string text) {
    order([&] { rules_.at(way).cut_at = std::move(text); });
  }
  /// Loses what contains this text; so many times.
  void drop(Way way, std::string text, int times = 1) {
    order([&] {
      rules_.at(way).lost = std::move(text);
      rules_.at(way).drops = times;
    });
  }
  /// Keeps what contains this text, once, and loses what comes after it on that connection: its
  /// sender may give it up, and nobody will know, until `deliver`.
  void keep(Way way, std::string text) {
    order([&] { rules_.at(way).kept = std::move(text); });
  }
  /// What was kept arrives now. (That connection stays deaf.)
  void deliver() {
    order([this] {
      for (auto& pair : pairs_) {
        if (!pair.deaf) continue;
        send_all(pair, pair.to, std::exchange(pair.kept, {}));
      }
    });
  }
  /// Nothing passes this way until `flow`; or it passes, and is forgotten: `swallow`.
  void stall(Way way) {
    order([&] { rules_.at(way).stalled = true; });
  }
  void swallow(Way way) {
    order([&] { rules_.at(way).swallowed = true; });
  }
  /// Everything takes so long this way, one after the other.
  void slow(Way way, std::chrono::milliseconds each) {
    order([&] { rules_.at(way).pause = each; });
  }
  /// Connections that are made from now on lead to another server.
  void lead_to(int server_port) {
    order([&] { server_port_ = server_port; });
  }
  /// All is well again.
  void flow() {
    order([this] { rules_ = {}; });
  }

  /// How often something was cut or lost by such an order.
  [[nodiscard]] int faults() const noexcept { return faults_; }
  /// Bytes that passed this way.
  [[nodiscard]] std::uint64_t passed(Way way) const noexcept { return passed_.at(way); }
  /// Connections that were ever made.
  [[nodiscard]] int connections() const noexcept { return connections_; }

 private:
  static constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  struct Rules {
    std::uint64_t left = kAll;
    std::string cut_at{};
    std::string lost{};
    std::string kept{};
    int drops = 0;
    bool stalled = false;
    bool swallowed = false;
    std::chrono::milliseconds pause{};
  };
  struct Pair {
    int client;
    int server;
    bool over = false;
    bool deaf = false;  ///< something was kept, on the way to `to`
    bool left = false;  ///< the client gave it up, and the server does not know
    int to = -1;
    std::string kept{};
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  static void close_both(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
  }

  template <class What>
  void order(What what) {
    const std::lock_guard lock(mutex_);
    what();
    const std::uint64_t one = 1;
    (void)!::write(bell_, &one, sizeof(one));
  }

  void accept_one() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(server_port_);
    Pair pair{.client = client, .server = server};
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return close_both(pair);
    }
    const int yes = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    pairs_.push_back(pair);
    ++connections_;
  }

  // What a connection says is small: it is passed on as it comes, blocking.
  void pass(Pair& pair, Way way) {
    std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const int from = way == to_server ? pair.client : pair.server;
    const int to = way == to_server ? pair.server : pair.client;
    const auto got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      pair.left = pair.deaf && way == to_server && pair.to == to;
      pair.over = !pair.left;
      return;
    }
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    auto& rules = rules_.at(way);
    std::this_thread::sleep_for(rules.pause);
    if (rules.swallowed || (pair.deaf && pair.to == to)) return;
    if (!rules.kept.empty() && bytes.find(rules.kept) != std::string_view::npos) {
      rules.kept.clear();
      pair.deaf = true;
      pair.to = to;
      pair.kept = bytes;
      ++faults_;
      return;
    }
    if (rules.drops > 0 && bytes.find(rules.lost) != std::string_view::npos) {
      --rules.drops;
      ++faults_;
      return;
    }
    if (!rules.cut_at.empty()) {
      if (const auto at = bytes.find(rules.cut_at); at != std::string_view::npos) {
        rules.cut_at.clear();
        bytes = bytes.substr(0, at);
        pair.over = true;
        ++faults_;
      }
    }
    if (rules.left != kAll) {
      if (bytes.size() >= rules.left) {
        bytes = bytes.substr(0, rules.left);
        rules.left = kAll;
        pair.over = true;
        ++faults_;
      } else {
        rules.left -= bytes.size();
      }
    }
    passed_.at(way) += bytes.size();
    send_all(pair, to, bytes);
  }

  static void send_all(Pair& pair, int to, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto put = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) {
        pair.over = true;
        return;
      }
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
  }

  void run() {
    std::vector<pollfd> fds;
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        std::uint64_t rings = 0;
        (void)!::read(bell_, &rings, sizeof(rings));
        std::erase_if(pairs_, [](const Pair& pair) {
          if (pair.over) close_both(pair);
          return pair.over;
        });
        fds.assign({{.fd = bell_, .events = POLLIN, .revents = 0},
                    {.fd = listener_, .events = POLLIN, .revents = 0}});
        for (const auto& pair : pairs_) {
          const auto wanted = [&](Way way) {
            return rules_.at(way).stalled ? short{0} : short{POLLIN};
          };
          fds.push_back(
              {.fd = pair.left ? -1 : pair.client, .events = wanted(to_server), .revents = 0});
          fds.push_back({.fd = pair.server, .events = wanted(to_client), .revents = 0});
        }
      }
      ::poll(fds.data(), fds.size(), -1);
      const std::lock_guard lock(mutex_);
      auto pair = pairs_.begin();
      for (std::size_t i = 2; i + 1 < fds.size(); i += 2, ++pair) {
        const auto look = [&](const pollfd& fd, Way way) {
          if (fd.revents == 0 || pair->over) return;
          // Nothing to read, and yet something happened: it was closed.
          if (rules_.at(way).stalled) pair->over = (fd.revents & (POLLHUP | POLLERR)) != 0;
          if (!rules_.at(way).stalled) pass(*pair, way);
        };
        look(fds[i], to_server);
        look(fds[i + 1], to_client);
      }
      if (fds[1].revents != 0) accept_one();
    }
  }

  int listener_ = -1;
  int bell_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  int server_port_;
  std::list<Pair> pairs_;  // only `run` adds and removes
  std::array<Rules, 2> rules_{};
  bool stop_ = false;
  std::atomic<int> faults_ = 0;
  std::atomic<int> connections_ = 0;
  std::array<std::atomic<std::uint64_t>, 2> passed_{};
  std::thread thread_;
};

}  // namespace interlock::servers
