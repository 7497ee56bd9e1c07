// What is known to be wrong and will be mended with the store that it is in: the table of known.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report.hpp"

namespace torture {

struct Known {
  int number = 0;
  std::string topology{};  ///< "etcd", and so also "etcd3"
  std::string check{};
  std::string contains{};  ///< a part of the violation's text; empty: any
};

/// Reads rows like `| 3 | file | recovery | granted after | seed 7 | why |`. No file: nothing is known.
std::vector<Known> read_known(const std::filesystem::path& file);

/// Nothing but what is known.
bool only_known(const RoundResult& round, const std::vector<Known>& known);

}  // namespace torture
