// Gives one fuzz target the files of its corpus, without libFuzzer: replay DIRECTORY-OR-FILE...
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "fuzz.hpp"

namespace {

std::vector<std::filesystem::path> files_of(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto files = files_of(argc, argv);
  std::size_t failed = 0;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(file), {});
    std::cout << path.filename().string()
              << std::endl;  // flushed, so that a crash is told of the right one
    try {
      fuzz::run(input);
    } catch (const std::exception& error) {
      std::cout << "  " << error.what() << "\n  to repeat: " << argv[0] << " " << path.string()
                << "\n";
      ++failed;
    }
  }
  std::cout << files.size() << " inputs, " << failed << " failed\n";
  return failed == 0 && !files.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
