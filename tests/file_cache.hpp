// A cache that processes share: a directory with a file for each key. Keys are file names.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "interlock/single_flight.hpp"

namespace interlock::testing_support {

class FileCache {
 public:
  explicit FileCache(std::filesystem::path directory) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
  }

  [[nodiscard]] Cache functions() const {
    return {.get = [*this](const std::string& key) { return get(key); },
            .put = [*this](const std::string& key, const std::string& value) { put(key, value); },
            .remove = [*this](const std::string& key) { remove(directory_ / key); }};
  }

  /// Its generator: counts its runs in a file.
  void count_run() const {
    std::ofstream(directory_ / "runs", std::ios::app) << "run\n" << std::flush;
  }
  [[nodiscard]] int runs() const {
    std::ifstream file(directory_ / "runs");
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

 private:
  [[nodiscard]] std::optional<std::string> get(const std::string& key) const {
    std::ifstream file(directory_ / key);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void put(const std::string& key, const std::string& value) const {
    const auto draft = directory_ / (key + "." + std::to_string(::getpid()));
    std::ofstream(draft) << value;
    std::filesystem::rename(draft, directory_ / key);
  }

  std::filesystem::path directory_;
};

}  // namespace interlock::testing_support
