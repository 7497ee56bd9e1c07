// What tests/rules/known.md has: differences that are faults, and stay until their store is replaced.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

namespace interlock::rules_walk {

/// Whether the list still has this number.
inline bool is_known(int number) {
  std::ifstream list(INTERLOCK_RULES_KNOWN);
  if (!list) throw std::runtime_error("can't read " INTERLOCK_RULES_KNOWN);
  const auto row = "| " + std::to_string(number) + " |";
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with(row)) return true;
  }
  return false;
}

}  // namespace interlock::rules_walk
