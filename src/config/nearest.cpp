// "Did you mean …?"
#include <algorithm>
#include <numeric>
#include <utility>

#include "interlock/config.hpp"

namespace interlock::detail {

namespace {

constexpr std::size_t kLongest = 64;  // nothing that is known is nearly as long

// Levenshtein's.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto each : known) {
    const auto away = distance(word, each);
    if (away >= least) continue;
    least = away;
    best = each;
  }
  return best;
}

}  // namespace interlock::detail
