// What the tests' own proxy does to messages at random: each form happens, about as often as it was told to, the same
// for the same seed; and everything else arrives, in order.
#include "servers/proxy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <set>

#include "eventually.hpp"

namespace interlock::servers {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using Weather = Proxy::Weather;

constexpr std::size_t kLength = 10;
constexpr auto kOver = "";

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// All messages are of one length, so that parts of them show: "000000042\n".
std::string message(int number) {
  auto text = std::to_string(number);
  return std::string(kLength - 1 - text.size(), '0') + text + "\n";
}

/// Answers each message with the same one, and keeps what each connection has said.
class Echo {
 public:
  Echo() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback(0);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("the echo can't listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
  }

  [[nodiscard]] int port() const noexcept { return port_; }

  struct Connection {
    int fd = -1;  ///< -1: it has ended
    std::string heard{};
  };
  /// In the order in which they were made.
  [[nodiscard]] std::vector<Connection> connections() {
    const std::lock_guard lock(mutex_);
    return connections_;
  }
  /// By all connections.
  [[nodiscard]] std::size_t heard() {
    std::size_t bytes = 0;
    for (const auto& connection : connections()) bytes += connection.heard.size();
    return bytes;
  }
  [[nodiscard]] bool all_ended() {
    const auto all = connections();
    return std::all_of(all.begin(), all.end(), [](const auto& each) { return each.fd < 0; });
  }

 private:
  void run(const std::stop_token& stop) {
    std::vector<pollfd> fds;
    std::vector<std::size_t> open;  // poll() takes no more than there may be descriptors
    while (!stop.stop_requested()) {
      fds.assign({{.fd = listener_, .events = POLLIN, .revents = 0}});
      open.clear();
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (connections_[i].fd < 0) continue;
        open.push_back(i);
        fds.push_back({.fd = connections_[i].fd, .events = POLLIN, .revents = 0});
      }
      ::poll(fds.data(), fds.size(), 20);
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 1; i < fds.size(); ++i) {
        if (fds[i].revents != 0) hear(connections_[open[i - 1]]);
      }
      if (fds[0].revents == 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) connections_.push_back({.fd = fd});
    }
    for (const auto& each : connections_) ::close(each.fd);
  }
  static void hear(Connection& connection) {
    std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const auto got = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      ::close(std::exchange(connection.fd, -1));
      return;
    }
    const auto whole = connection.heard.size() / kLength * kLength;
    connection.heard.append(buffer.data(), static_cast<std::size_t>(got));
    const auto answer =
        connection.heard.substr(whole, connection.heard.size() / kLength * kLength - whole);
    (void)::send(connection.fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  int listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<Connection> connections_;
  std::jthread thread_;
};

class Caller {
 public:
  explicit Caller(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto address = loopback(port);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("the proxy does not answer");
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() { ::close(fd_); }

  void say(const std::string& text) const {
    (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// So many bytes, or fewer if the connection ends before.
  [[nodiscard]] std::string hear(std::size_t bytes = kLength) const {
    std::string text(bytes, '\0');
    std::size_t at = 0;
    while (at < bytes) {
      const auto got = ::recv(fd_, text.data() + at, bytes - at, 0);
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    text.resize(at);
    return text;
  }
  [[nodiscard]] bool has_something() const {
    pollfd fd{.fd = fd_, .events = POLLIN, .revents = 0};
    return ::poll(&fd, 1, 0) > 0;
  }

 private:
  int fd_;
};

/// A kind of weather, tried again and again: in which trials it happened.
struct Trials {
  std::vector<bool> happened{};
  std::vector<std::string> heard{};  ///< by the server, in each trial
  std::vector<std::string> told{};   ///< to the caller

  [[nodiscard]] int count() const {
    return static_cast<int>(std::count(happened.begin(), happened.end(), true));
  }
};

/// Each trial is a connection and one message. The trial is over when its message was answered, or something happened.
Trials try_with(const Weather& weather, int trials) {
  Echo echo;
  Proxy proxy(echo.port());
  proxy.weather(weather);
  Trials result;
  for (int i = 0; i < trials; ++i) {
    const Caller caller(proxy.port());
    const auto before = proxy.faults();
    caller.say(message(i));
    // An answer that gets lost is no end.
    EXPECT_TRUE(eventually([&] { return caller.has_something() || proxy.faults() > before; }));
    result.told.push_back(weather.lose_reply > 0 && !caller.has_something() ? kOver
                                                                            : caller.hear());
    result.happened.push_back(proxy.faults() > before);
  }
  const auto wanted = static_cast<std::size_t>(trials);
  EXPECT_TRUE(eventually([&] { return echo.connections().size() >= wanted && echo.all_ended(); }));
  for (const auto& connection : echo.connections()) result.heard.push_back(connection.heard);
  return result;
}

/// Within five standard deviations.
void expect_about(double probability, const Trials& trials) {
  const auto number = static_cast<double>(trials.happened.size());
  const auto deviation = std::sqrt(number * probability * (1 - probability));
  EXPECT_NEAR(trials.count(), number * probability, 5 * deviation);
  EXPECT_GT(trials.count(), 0);
}

/// The same seed brings the same, and another seed something else.
void expect_reproducible(Weather weather, int trials) {
  weather.seed = 1;
  const auto first = try_with(weather, trials);
  EXPECT_EQ(try_with(weather, trials).happened, first.happened);
  weather.seed = 2;
  EXPECT_NE(try_with(weather, trials).happened, first.happened);
}

TEST(ProxyWeather, NothingHappensWhereNothingIsToldTo) {
  Echo echo;
  const Proxy proxy(echo.port());
  const Caller caller(proxy.port());
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += message(i);
  const std::jthread speaker([&] { caller.say(all); });
  EXPECT_EQ(caller.hear(all.size()), all);
  EXPECT_EQ(echo.connections().at(0).heard, all);
  EXPECT_EQ(proxy.faults(), 0);
}

TEST(ProxyWeather, WhatIsDelayedArrivesInOrder) {
  Echo echo;
  Proxy proxy(echo.port());
  proxy.weather({.delay = 1, .longest = 10ms});
  const Caller caller(proxy.port());
  const auto begun = std::chrono::steady_clock::now();
  std::string all;
  for (int i = 0; i < 50; ++i) {
    caller.say(message(i));
    caller.say(message(i + 1'000));
    all += message(i) + message(i + 1'000);
    EXPECT_EQ(caller.hear(2 * kLength), message(i) + message(i + 1'000));
  }
  // A hundred pieces at least, of 5 ms on average.
  EXPECT_GT(std::chrono::steady_clock::now() - begun, 250ms);
  EXPECT_EQ(echo.connections().at(0).heard, all);
  EXPECT_EQ(proxy.faults(), 0);
}

TEST(ProxyWeather, ADelayIsAsLikelyAsItWasTold) {
  Echo echo;
  Proxy proxy(echo.port());
  // So long that even a busy machine is not taken for it.
  proxy.weather({.delay = 0.1, .longest = 400ms});
  const Caller caller(proxy.port());
  int slow = 0;
  for (int i = 0; i < 100; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    caller.say(message(i));
    EXPECT_EQ(caller.hear(), message(i));
    slow += std::chrono::steady_clock::now() - begun > 50ms ? 1 : 0;
  }
  // 200 pieces: 20 delays, of which an eighth are shorter than that.
  EXPECT_GE(slow, 5);
  EXPECT_LE(slow, 60);
}

TEST(ProxyWeather, AConnectionIsCutAtAnyByte) {
  const auto trials = try_with({.cut = 1}, 300);
  std::set<std::size_t> lengths;
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_TRUE(message(i).starts_with(trials.heard.at(at))) << trials.heard.at(at);
    EXPECT_EQ(trials.told.at(at), kOver);
    lengths.insert(trials.heard.at(at).size());
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(ProxyWeather, CutsAreAsLikelyAsTheyWereTold) {
  constexpr double kEach = 0.1;
  const auto trials = try_with({.cut = kEach}, 500);
  // On the way there, or else on the way back.
  expect_about(kEach + (1 - kEach) * kEach, trials);
  for (int i = 0; i < 500; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_TRUE(message(i).starts_with(trials.heard.at(at)));
    EXPECT_TRUE(message(i).starts_with(trials.told.at(at)));
    EXPECT_TRUE(trials.happened.at(at) || trials.told.at(at) == message(i));
    // What the server did not hear in full it can't have answered.
    EXPECT_TRUE(trials.told.at(at).empty() || trials.heard.at(at) == message(i));
  }
  expect_reproducible({.cut = kEach}, 100);
}

TEST(ProxyWeather, ALostReplyLosesNoRequest) {
  constexpr double kEach = 0.2;
  const auto trials = try_with({.lose_reply = kEach}, 300);
  expect_about(kEach, trials);
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(trials.heard.at(at), message(i));
    EXPECT_EQ(trials.told.at(at), trials.happened.at(at) ? kOver : message(i));
  }
  expect_reproducible({.lose_reply = kEach}, 100);
}

TEST(ProxyWeather, AfterALostReplyThatConnectionSaysNothingUntilItEnds) {
  Echo echo;
  Proxy proxy(echo.port());
  const Caller caller(proxy.port());
  const Caller other(proxy.port());
  proxy.weather({.lose_reply = 1});
  caller.say(message(1));
  EXPECT_TRUE(eventually([&] { return proxy.faults() == 1; }));
  proxy.weather({});
  caller.say(message(2));
  EXPECT_TRUE(eventually([&] { return echo.heard() == 2 * kLength; }));
  // The proxy is past the answer to the second message when it has passed this one on.
  other.say(message(3));
  EXPECT_EQ(other.hear(), message(3));
  EXPECT_FALSE(caller.has_something());
  proxy.flow();
  EXPECT_EQ(caller.hear(), kOver);
  other.say(message(4));
  EXPECT_EQ(other.hear(), message(4)) << "nothing was lost here";
}

TEST(ProxyWeather, ALateRequestArrivesThoughItsCallerWasCutOff) {
  constexpr double kEach = 0.2;
  const auto trials = try_with({.late = kEach, .latest = 100ms}, 300);
  expect_about(kEach, trials);
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(trials.heard.at(at), message(i)) << "once";
    EXPECT_EQ(trials.told.at(at), trials.happened.at(at) ? kOver : message(i));
  }
  expect_reproducible({.late = kEach, .latest = 1ms}, 100);
}

TEST(ProxyWeather, LaterRequestsOvertakeALateOne) {
  Echo echo;
  Proxy proxy(echo.port());
  // Most of them come late enough.
  int overtaken = 0;
  for (int i = 0; i < 10; ++i) {
    const auto heard = echo.heard();
    const Caller caller(proxy.port());
    proxy.weather({.seed = static_cast<std::uint64_t>(i), .late = 1, .latest = 2000ms});
    caller.say(message(i));
    EXPECT_EQ(caller.hear(), kOver);
    proxy.weather({});
    const Caller next(proxy.port());
    next.say(message(1'000 + i));
    EXPECT_EQ(next.hear(), message(1'000 + i));
    overtaken += echo.heard() == heard + kLength ? 1 : 0;
  }
  EXPECT_GT(overtaken, 0);
  EXPECT_TRUE(eventually([&] { return echo.heard() == 20 * kLength; })) << echo.heard();
}

TEST(ProxyWeather, WhatWasSaidTwiceIsAnsweredOnce) {
  constexpr double kEach = 0.3;
  Echo echo;
  Proxy proxy(echo.port());
  proxy.weather({.twice = kEach});
  const Caller caller(proxy.port());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    caller.say(message(i));
    EXPECT_EQ(caller.hear(), message(i));
    all += message(i);
  }
  const auto copies = static_cast<std::size_t>(proxy.faults());
  EXPECT_NEAR(proxy.faults(), 200 * kEach, 5 * std::sqrt(200 * kEach * (1 - kEach)));
  EXPECT_TRUE(eventually([&] {
    const auto made = echo.connections();
    return made.size() == 1 + copies &&
           std::all_of(made.begin() + 1, made.end(), [](auto& each) { return each.fd < 0; });
  }));
  // The copies are made with the messages: each is longer than the one before.
  const auto made = echo.connections();
  EXPECT_EQ(made.at(0).heard, all);
  std::size_t last = 0;
  for (std::size_t i = 1; i < made.size(); ++i) {
    const auto& copy = made.at(i).heard;
    EXPECT_TRUE(all.starts_with(copy));
    EXPECT_EQ(copy.size() % kLength, 0U);
    EXPECT_GT(copy.size(), last);
    last = copy.size();
  }
  EXPECT_FALSE(caller.has_something());
}

TEST(ProxyWeather, CopiesAreMadeAtTheSameMessagesForTheSameSeed) {
  const auto copied = [](std::uint64_t seed) {
    Echo echo;
    Proxy proxy(echo.port());
    proxy.weather({.seed = seed, .twice = 0.3});
    const Caller caller(proxy.port());
    std::vector<int> messages;
    for (int i = 0; i < 50; ++i) {
      const auto before = proxy.faults();
      caller.say(message(i));
      EXPECT_EQ(caller.hear(), message(i));
      if (proxy.faults() > before) messages.push_back(i);
    }
    return messages;
  };
  const auto first = copied(1);
  EXPECT_EQ(copied(1), first);
  EXPECT_NE(copied(2), first);
}

}  // namespace
}  // namespace interlock::servers
