// A server whose last answer never ends, and what a command that meets it takes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

/// Listens on a free loopback port. On each connection it answers the first message with the first
/// answer, and so on. The last answer is followed by `more`, again and again, as fast as the client
/// takes it, until the client hangs up. Without `more`, the server hangs up itself.
class EndlessServer {
 public:
  /// `end_of`: where the first message ends in these bytes; 0: it is not complete. Without it, what comes at once is one.
  using EndOf = std::function<std::size_t(std::string_view)>;
  EndlessServer(
      std::vector<std::string> answers, const std::string& more,
      EndOf end_of = [](std::string_view bytes) { return bytes.size(); })
      : answers_(std::move(answers)), end_of_(std::move(end_of)) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 20U;
    while (!more.empty() && more_.size() < kAtOnce) more_ += more;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("the endless server can't listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  EndlessServer(const EndlessServer&) = delete;
  EndlessServer& operator=(const EndlessServer&) = delete;
  ~EndlessServer() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      ::shutdown(listener_, SHUT_RDWR);
      for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
    }
    acceptor_.join();
    for (auto& thread : threads_) thread.join();
    for (const int client : clients_) ::close(client);
    ::close(listener_);
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void accept_all() {
    for (;;) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (stop_ || client < 0) {
        if (client >= 0) ::close(client);
        return;
      }
      clients_.push_back(client);
      threads_.emplace_back([this, client] { serve(client); });
    }
  }

  void serve(int client) const {
    std::array<char, 65536> bytes{};
    std::string message;
    for (const auto& answer : answers_) {
      std::size_t length = 0;
      while ((length = message.empty() ? 0 : end_of_(message)) == 0) {
        const auto got = ::recv(client, bytes.data(), bytes.size(), 0);
        if (got <= 0) return;
        message.append(bytes.data(), static_cast<std::size_t>(got));
      }
      message.erase(0, length);
      if (!send(client, answer)) return;
    }
    while (!more_.empty() && send(client, more_)) {
    }
    ::shutdown(client, SHUT_RDWR);
  }

  static bool send(int client, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto put = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

  const std::vector<std::string> answers_;
  const EndOf end_of_;
  std::string more_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  bool stop_ = false;
  std::vector<int> clients_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// In MiB. The sanitizers' own tables take far more than the command.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kLittleMemory = 2000;
#else
inline constexpr std::size_t kLittleMemory = 50;
#endif

/// What a command took.
struct Usage {
  int status = -1;               ///< its exit status; -1: a signal ended it
  std::chrono::seconds took{};   ///< until it ended, or was killed after a minute
  std::size_t peak_mebibytes{};  ///< the most memory that it had
  std::string output{};
};

/// Runs a command to its end. The memory of this process before the command began counts, too.
inline Usage measure(std::vector<std::string> words) {
  constexpr auto kPatience = std::chrono::minutes(1);
  const TemporaryDirectory directory;
  const auto output = (directory.path() / "output").string();
  const auto begin = std::chrono::steady_clock::now();
  Process process(std::move(words), output);
  int status = -1;
  rusage usage{};
  while (::wait4(process.pid(), &status, WNOHANG, &usage) == 0) {
    if (std::chrono::steady_clock::now() - begin > kPatience) process.signal(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  process.forget();
  std::ifstream file(output);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .took = std::chrono::duration_cast<std::chrono::seconds>(
              std::chrono::steady_clock::now() - begin),
          .peak_mebibytes = static_cast<std::size_t>(usage.ru_maxrss) / 1024,
          .output = {std::istreambuf_iterator<char>(file), {}}};
}

/// A password that a URL has to encode, and what a server may make of it.
struct Repeated {
  static constexpr auto kPassword = "hush/hush w%rd";
  static constexpr auto kEncoded = "hush%2Fhush%20w%25rd";

  /// In all spellings.
  static std::string text() {
    return std::string("'") + kPassword + "' " + kEncoded + " hush%2fhush+w%25rd is wrong";
  }
  /// Expected: an error that repeats the rest, in a log of everything.
  static void expect_hidden(const Usage& usage) {
    EXPECT_GT(usage.status, 0) << usage.output;
    EXPECT_EQ(usage.output.find("hush"), std::string::npos) << usage.output;
    EXPECT_NE(usage.output.find("'***' *** *** is wrong"), std::string::npos) << usage.output;
  }
};

/// Expected of a command that waits for a second: an error that names the server, in time, and hardly any memory.
inline void expect_refused(const Usage& usage, const std::string& address) {
  EXPECT_EQ(usage.status, 69) << usage.output;
  EXPECT_NE(usage.output.find(address), std::string::npos) << usage.output;
  EXPECT_LT(usage.took, std::chrono::seconds(10));
  EXPECT_LT(usage.peak_mebibytes, kLittleMemory) << usage.output;
}

}  // namespace interlock::servers
