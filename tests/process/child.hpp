// A program of tests/process/programs as a child process, to talk to, stop and kill.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "signals.hpp"

namespace interlock::process {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::kPatience;

/// Killed, if it lives still, when the object goes out of scope.
class Child {
 public:
  Child(const std::string& program, const std::vector<std::string>& arguments) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) fail("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    auto path = std::string(INTERLOCK_TEST_PROGRAMS) + "/" + program;
    auto words = arguments;
    std::vector<char*> argv{path.data()};
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    if (error != 0) throw std::system_error(error, std::generic_category(), path);
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        to_(std::exchange(other.to_, -1)),
        from_(std::exchange(other.from_, -1)),
        text_(std::move(other.text_)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(to_, other.to_);
    std::swap(from_, other.from_);
    std::swap(text_, other.text_);
    return *this;
  }
  ~Child() {
    kill();
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Writes a line to its standard input.
  void tell(const std::string& text) const {
    const auto line = text + "\n";
    if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) fail("write");
  }
  /// The next line that it prints; "(nothing)" when it ended or took too long.
  std::string line() {
    const auto until = BootClock::now() + kPatience;
    while (true) {
      if (const auto end = text_.find('\n'); end != std::string::npos) {
        auto first = text_.substr(0, end);
        text_.erase(0, end + 1);
        return first;
      }
      pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now());
      if (left <= 0ms || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return "(nothing)";
      std::array<char, 4096> buffer{};
      const auto size = read(from_, buffer.data(), buffer.size());
      if (size <= 0) return "(nothing)";
      text_.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  /// Reads on until a line begins like this; gives what follows.
  std::string after(const std::string& beginning) {
    std::string next;
    do {
      next = line();
      if (next.starts_with(beginning)) return next.substr(beginning.size());
    } while (next != "(nothing)");
    ADD_FAILURE() << "it never said '" << beginning << "'";
    return "";
  }
  std::string ask(const std::string& question, const std::string& beginning) {
    tell(question);
    return after(beginning);
  }
  /// Waits until it holds; its fence.
  std::uint64_t fence() {
    const auto text = after("held ");
    return text.empty() ? 0 : std::stoull(text);
  }

  void signal(int number) const { testing_support::send_signal(pid_, number); }
  /// SIGKILL; and nobody is told of its death for now.
  void kill_and_leave_it() const { ::kill(pid_, SIGKILL); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  /// Waits for its end: the exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) {
      ADD_FAILURE() << "it never ended";
      return -SIGKILL;
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string text_;
};

/// A file store of its own for every test, and a client to look at it from here.
class ProcessTest : public testing::Test {
 protected:
  [[nodiscard]] std::string url() const {
    return "file://" + (directory_.path() / "locks").string();
  }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }
  [[nodiscard]] const Client& locks() const { return locks_; }

  /// A process that waits for the lock and holds it until it is told otherwise.
  [[nodiscard]] Child holder(const std::string& name, const std::string& ttl = "600s",
                             const std::string& mode = "exclusive") const {
    return Child("holder", {url(), name, ttl, mode});
  }
  /// The same, and it is in the queue.
  [[nodiscard]] Child queued_holder(const std::string& name,
                                    const std::string& mode = "exclusive") {
    const auto before = waiters(name);
    auto child = holder(name, "600s", mode);
    EXPECT_TRUE(eventually([&] { return waiters(name) > before; }));
    return child;
  }

  [[nodiscard]] std::size_t holders(const std::string& name) const {
    const auto found = locks_.inspect({.resources = {name}}).resources;
    return found.empty() ? 0 : found[0].holders.size();
  }
  [[nodiscard]] std::size_t waiters(const std::string& name) const {
    const auto found = locks_.inspect({.resources = {name}}).resources;
    return found.empty() ? 0 : found[0].waiters.size();
  }
  [[nodiscard]] bool nothing_left() const { return locks_.inspect().resources.empty(); }

 private:
  TemporaryDirectory directory_;
  Client locks_ = connect("file://" + (directory_.path() / "locks").string());
};

}  // namespace interlock::process
