#include "second_opinion.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace torture {

namespace fs = std::filesystem;

namespace {

constexpr int kNotInOrder = 1;

/// Its exit status.
int run(std::array<std::string, 4> words, const fs::path& output) {
  std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                            nullptr};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), words[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::optional<checks::Finding> second_opinion(const fs::path& program, const fs::path& directory) {
  std::error_code absent;
  const auto size = fs::file_size(program, absent);
  if (absent || size == 0) return std::nullopt;
  const auto output = directory / "porcupine.json";
  const auto picture = directory / "porcupine.html";
  const int status =
      run({program.string(), "--picture", picture.string(), directory.string()}, output);
  std::ifstream in(output);
  const auto answer = Json::parse(in, nullptr, false);
  if ((status != 0 && status != kNotInOrder) || !answer.is_object()) {
    throw std::runtime_error(program.string() + " could not judge " + directory.string() +
                             ": it ended with status " + std::to_string(status));
  }
  checks::Finding finding{.name = "porcupine", .looked_at = answer.at("looked_at")};
  finding.figures["undecided"] =
      static_cast<std::int64_t>(answer.value("undecided", Json::array()).size());
  if (!answer.at("ok").get<bool>()) {
    finding.violations.push_back({"no order of the grants and releases of " +
                                      answer.at("resource").get<std::string>() +
                                      " is one that a mutex allows: " + picture.string(),
                                  {}});
  }
  return finding;
}

}  // namespace torture
