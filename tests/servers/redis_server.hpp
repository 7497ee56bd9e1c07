// A real redis-server for tests.
#pragma once

#include <optional>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> options = {}) : options_(std::move(options)) {
    start();
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string socket() const { return (directory_.path() / "socket").string(); }
  [[nodiscard]] Process& process() { return *process_; }

  void stop(int signal = SIGKILL) {
    fixed_ = true;
    process_->end(signal);
  }
  /// On the same port.
  void start() {
    const auto log = (directory_.path() / "log").string();
    for (int attempt = 0; attempt < 20; ++attempt) {
      if (port_ == 0) port_ = free_port();
      std::vector<std::string> words{"redis-server",
                                     "--port",
                                     std::to_string(port_),
                                     "--bind",
                                     "127.0.0.1",
                                     "--save",
                                     "",
                                     "--dir",
                                     directory_.path().string(),
                                     "--unixsocket",
                                     socket()};
      words.insert(words.end(), options_.begin(), options_.end());
      process_.emplace(std::move(words), log);
      if (testing_support::eventually([&] { return process_->over() || listens(port_); }) &&
          !process_->over()) {
        return;
      }
      if (!fixed_) port_ = 0;  // somebody else took it meanwhile
    }
    throw std::runtime_error("redis-server does not start; see " + log);
  }
  void restart() {
    stop(SIGTERM);
    start();
  }

 private:
  TemporaryDirectory directory_;
  std::vector<std::string> options_;
  int port_ = 0;
  bool fixed_ = false;
  std::optional<Process> process_;
};

}  // namespace interlock::servers
