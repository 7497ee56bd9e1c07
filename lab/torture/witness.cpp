#include "witness.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>

namespace torture {

namespace {

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr std::int64_t kLate = 50'000'000;

}  // namespace

Witness::Witness(const Log& log) : log_(log) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for the witness");
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
  std::string program = "cat";
  std::array<char*, 2> argv{program.data(), nullptr};
  const int failed = ::posix_spawnp(&echo_, "cat", &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(to[0]);
  ::close(from[1]);
  asks_ = to[1];
  hears_ = from[0];
  if (failed != 0) throw std::runtime_error("the witness can't be started");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Witness::~Witness() {
  thread_.request_stop();
  thread_.join();
  ::close(asks_);  // and cat ends
  ::waitpid(echo_, nullptr, 0);
  ::close(hears_);
}

void Witness::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto from = now();
    char byte = '.';
    if (::write(asks_, &byte, 1) != 1 || ::read(hears_, &byte, 1) != 1) return;
    std::this_thread::sleep_for(kPause);
    if (now() - from > kLate) log_.add("stall", {{"from", from}});
  }
}

}  // namespace torture
