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
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <random>
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
  /// A new socket in the network in which the server is.
  using Reach = std::function<int()>;
  explicit Proxy(int server_port, std::string server_host = "127.0.0.1", Reach reach = {})
      : reach_(std::move(reach)), server_host_(std::move(server_host)), server_port_(server_port) {
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
  /// What goes wrong at random, whatever the protocol: each with so much probability for each piece that arrives here.
  struct Weather {
    std::uint64_t seed = 1;
    double delay = 0;  ///< everybody waits, up to …
    std::chrono::milliseconds longest{20};
    double cut = 0;  ///< a part of it passes, which may end at any byte; then the connection is cut
    double lose_reply = 0;  ///< it is lost, and so is all that the server says on this connection
    double late =
        0;  ///< the client is cut off, and its request arrives all the same, after up to …
    std::chrono::milliseconds latest{2000};
    double twice =
        0;  ///< what was said here to the server is said again, on a connection of its own
  };
  void weather(const Weather& weather) {
    order([&] {
      weather_ = weather;
      random_.seed(weather.seed);
    });
  }
  /// All is well again. Connections on which something was lost end.
  void flow() {
    order([this] {
      rules_ = {};
      weather_ = {};
      for (auto& pair : pairs_) pair.over = pair.over || pair.mute;
    });
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
    bool mute = false;       ///< the server's replies get lost
    bool abandoned = false;  ///< no client has it any more, and the server does not know
    std::string said{};      ///< to the server, so far; no more than kMostSaid
    std::chrono::steady_clock::time_point due = std::chrono::steady_clock::time_point::
        max();  ///< abandoned: what was kept arrives, or it ends
  };

  static constexpr std::size_t kMostSaid = std::size_t{256} << 10U;
  /// Neither a server that is stopped nor a network that is gone holds up the proxy for longer.
  static constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};

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
    const int server = connect_to_server();
    if (server < 0) {
      ::close(client);
      return;
    }
    const int yes = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    pairs_.push_back({.client = client, .server = server});
    ++connections_;
  }
  [[nodiscard]] int connect_to_server() const {
    const int server = reach_ ? reach_() : ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(server_port_);
    ::inet_pton(AF_INET, server_host_.c_str(), &address.sin_addr);
    ::setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      ::close(server);
      return -1;
    }
    const int yes = 1;
    ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return server;
  }

  bool happens(double probability) {
    return probability > 0 && std::bernoulli_distribution(probability)(random_);
  }
  std::chrono::milliseconds up_to(std::chrono::milliseconds most) {
    return std::chrono::milliseconds(
        std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
  }
  /// False: these bytes don't pass, or not now.
  bool survives(Pair& pair, Way way, std::string_view& bytes) {
    const auto now = std::chrono::steady_clock::now();
    if (pair.mute && way == to_client) return false;
    if (happens(weather_.delay)) std::this_thread::sleep_for(up_to(weather_.longest));
    if (happens(weather_.cut)) {
      bytes = bytes.substr(0, random_() % bytes.size());
      pair.over = true;
      ++faults_;
    } else if (way == to_client && happens(weather_.lose_reply)) {
      pair.mute = true;
      ++faults_;
      return false;
    } else if (way == to_server && happens(weather_.late)) {
      ::shutdown(pair.client, SHUT_RDWR);
      pair.abandoned = true;
      pair.kept = bytes;
      pair.due = now + up_to(weather_.latest);
      ++faults_;
      return false;
    } else if (way == to_server && pair.said.size() < kMostSaid && happens(weather_.twice)) {
      if (const int again = connect_to_server(); again >= 0) {
        pairs_.push_back(
            {.client = -1, .server = again, .kept = pair.said, .abandoned = true, .due = now});
        ++faults_;
      }
    }
    return true;
  }
  /// What was kept arrives; a second later the connection ends.
  static void deliver_late(Pair& pair) {
    pair.over = pair.kept.empty();
    if (!pair.over) send_all(pair, pair.server, std::exchange(pair.kept, {}));
    pair.due += std::chrono::seconds(1);
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
    if (pair.abandoned) return;
    if (way == to_server && pair.said.size() < kMostSaid) pair.said += bytes;
    if (!survives(pair, way, bytes)) return;
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

  /// For poll.
  static int milliseconds_until(std::chrono::steady_clock::time_point due) {
    using std::chrono::milliseconds;
    if (due == std::chrono::steady_clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(due - std::chrono::steady_clock::now());
    return static_cast<int>(std::max(left, milliseconds(0)).count());
  }

  void run() {
    std::vector<pollfd> fds;
    while (true) {
      auto due = std::chrono::steady_clock::time_point::max();
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
          due = std::min(due, pair.due);
          const auto wanted = [&](Way way) {
            return rules_.at(way).stalled ? short{0} : short{POLLIN};
          };
          fds.push_back({.fd = pair.left || pair.abandoned ? -1 : pair.client,
                         .events = wanted(to_server),
                         .revents = 0});
          fds.push_back({.fd = pair.server, .events = wanted(to_client), .revents = 0});
        }
      }
      ::poll(fds.data(), fds.size(), milliseconds_until(due));
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
        if (std::chrono::steady_clock::now() >= pair->due) deliver_late(*pair);
      }
      if (fds[1].revents != 0) accept_one();
    }
  }

  int listener_ = -1;
  int bell_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  Reach reach_;
  std::string server_host_;
  int server_port_;
  std::list<Pair> pairs_;  // only `run` adds and removes
  std::array<Rules, 2> rules_{};
  Weather weather_{};
  std::mt19937_64 random_{};
  bool stop_ = false;
  std::atomic<int> faults_ = 0;
  std::atomic<int> connections_ = 0;
  std::array<std::atomic<std::uint64_t>, 2> passed_{};
  std::thread thread_;
};

}  // namespace interlock::servers
