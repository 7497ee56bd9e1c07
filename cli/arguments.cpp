#include "arguments.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "command.hpp"
#include "zero_ended.hpp"

namespace cli {

Descriptor file_of(const std::vector<std::string>& arguments) {
  Descriptor file(::memfd_create("interlock-arguments", MFD_CLOEXEC));
  const auto all = join_zero_ended(arguments);
  for (std::size_t done = 0; file && done < all.size();) {
    const auto more = ::write(file.get(), all.data() + done, all.size() - done);
    if (more <= 0) file.reset();
    done += static_cast<std::size_t>(std::max<ssize_t>(more, 0));
  }
  if (!file) {
    throw Failure(kSystem, std::string("no file in memory for the arguments of a process: ") +
                               std::strerror(errno) +
                               "; raise the limit of open files (ulimit -n)");
  }
  return file;
}

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const char* variable = std::getenv(kArgumentsVariable);
  if (variable == nullptr) return arguments;  // started by hand
  int number = -1;
  std::from_chars(variable, variable + std::strlen(variable), number);
  ::unsetenv(kArgumentsVariable);
  const Descriptor file(number);
  std::string all;
  std::array<char, 65536> buffer{};
  while (true) {
    const auto got = ::pread(number, buffer.data(), buffer.size(), static_cast<off_t>(all.size()));
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return split_zero_ended(all);
}

}  // namespace cli
