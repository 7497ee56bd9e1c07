#include "spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace torture {

namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

pid_t spawn(Spawn what) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (what.input >= 0) {
    ::posix_spawn_file_actions_adddup2(&files, what.input, STDIN_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (what.output >= 0) ::posix_spawn_file_actions_adddup2(&files, what.output, STDOUT_FILENO);
  if (!what.errors.empty()) {
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, what.errors.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  const auto argv = pointers(what.words);
  std::vector<char*> envp;
  if (what.environment) envp = pointers(*what.environment);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, what.program.c_str(), &files, nullptr, argv.data(),
                                    what.environment ? envp.data() : environ);
  ::posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? pid : 0;
}

int wait_for_end(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace torture
