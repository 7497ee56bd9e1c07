#include "second_opinion.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "spawn.hpp"

namespace torture {

namespace fs = std::filesystem;

namespace {

constexpr int kNotInOrder = 1;

/// Its exit status.
int run(std::vector<std::string> words, const fs::path& output) {
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto program = words.front();
  const auto pid = spawn({.program = program, .words = std::move(words), .output = out});
  ::close(out);
  if (pid == 0) throw std::runtime_error(program + " can't be started");
  const int status = wait_for_end(pid);
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
