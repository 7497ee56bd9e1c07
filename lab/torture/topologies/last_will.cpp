#include "torture/topologies/last_will.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace torture {

LastWill::LastWill(std::string command) {
  // `read` ends when nobody has the other end of the pipe any more.
  command = "trap '' INT TERM HUP; read -r _; " + command;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe for a last will");
  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);
  until_ = ends[1];
}

LastWill::~LastWill() {
  ::close(until_);
  if (child_ > 0) ::waitpid(child_, nullptr, 0);
}

}  // namespace torture
