#include "torture/topologies/last_will.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace torture {

namespace {

std::array<int, 2> new_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe for a last will");
  return ends;
}

}  // namespace

LastWill::LastWill(std::string command) {
  // `read` ends when nobody has the other end of the pipe any more.
  command = "read -r _; " + command;
  const auto until = new_pipe();
  const auto done = new_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    // In a session of its own, and nobody's child: what ends this process and all that it started does not end it.
    if (::fork() != 0) ::_exit(0);
    ::setsid();
    ::dup2(until[0], STDIN_FILENO);
    ::dup2(done[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
  ::close(until[0]);
  ::close(done[1]);
  until_ = until[1];
  done_ = done[0];
}

LastWill::~LastWill() {
  ::close(until_);
  char nothing = 0;
  while (::read(done_, &nothing, 1) > 0) {
  }
  ::close(done_);
}

}  // namespace torture
