// A server of the tests' own: started on a free loopback port, and ended with the test, however
// that ends.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "signals.hpp"

namespace interlock::servers {

/// A port that nobody listens on, and that no other test gets for as long as this process lives: servers
/// are stopped and started again on theirs. Below those that the system gives to outgoing connections.
inline int free_port() {
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = std::uniform_int_distribution(12000, 31999)(random);
    // Kept by a name that only one can have, and that goes with its process.
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const auto length = std::snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
                                      "interlock-tests-port-%d", port);
    const int kept = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool ours = ::bind(kept, reinterpret_cast<sockaddr*>(&name),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                                    static_cast<std::size_t>(length))) == 0 &&
                      ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(fd);
    if (ours) return port;
    ::close(kept);
  }
  throw std::runtime_error("no free port");
}

/// True if somebody listens there.
inline bool listens(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool yes = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return yes;
}

class Process {
 public:
  /// Its output goes to the file.
  Process(std::vector<std::string> words, const std::string& output) {
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("can't fork");
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Process() { end(SIGKILL); }

  void signal(int number) const {
    if (pid_ > 0) testing_support::send_signal(pid_, number);
  }
  void end(int number) {
    if (pid_ <= 0) return;
    ::kill(pid_, number);
    if (number != SIGKILL) ::kill(pid_, SIGCONT);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  /// It ended by itself.
  [[nodiscard]] bool over() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ <= 0;
  }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Somebody else has waited for its end.
  void forget() noexcept { pid_ = -1; }

 private:
  pid_t pid_ = -1;
};

/// Runs a program and waits for its end: its exit status, and what it printed in `output`.
inline int run(std::vector<std::string> words, const std::string& output) {
  Process process(std::move(words), output);
  int status = -1;
  if (::waitpid(process.pid(), &status, 0) != process.pid()) return -1;
  process.forget();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace interlock::servers
