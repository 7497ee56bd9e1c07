#include "known.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace torture {

namespace {

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" `");
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_last_not_of(" `") - from + 1);
}

}  // namespace

std::vector<Known> read_known(const std::filesystem::path& file) {
  std::vector<Known> known;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(trimmed(cell));
    if (row.size() < 5 || row[1].empty() ||
        row[1].find_first_not_of("0123456789") != std::string::npos)
      continue;
    known.push_back({std::stoi(row[1]), row[2], row[3], row[4]});
  }
  return known;
}

bool only_known(const RoundResult& round, const std::vector<Known>& known) {
  return std::all_of(round.findings.begin(), round.findings.end(), [&](const auto& finding) {
    return std::all_of(
        finding.violations.begin(), finding.violations.end(), [&](const auto& violation) {
          return std::any_of(known.begin(), known.end(), [&](const Known& each) {
            return round.topology.starts_with(each.topology) && finding.name == each.check &&
                   violation.text.find(each.contains) != std::string::npos;
          });
        });
  });
}

}  // namespace torture
