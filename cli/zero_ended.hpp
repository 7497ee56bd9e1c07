// Texts in one file, each ended by a zero: how processes of ours hand each other words of any length.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// None of them may contain a zero.
inline std::string join_zero_ended(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all.append(text).push_back('\0');
  return all;
}

/// The last one counts also without its zero.
inline std::vector<std::string> split_zero_ended(std::string_view all) {
  std::vector<std::string> texts;
  while (!all.empty()) {
    texts.emplace_back(all.substr(0, all.find('\0')));
    all.remove_prefix(std::min(texts.back().size() + 1, all.size()));
  }
  return texts;
}

}  // namespace cli
