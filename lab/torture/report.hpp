// What rounds of torture have shown, for people and for programs.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "checks/checks.hpp"

namespace torture {

/// A round, without its history.
struct RoundResult {
  std::string topology{};
  bool given = false;  ///< a store of the user's own
  std::uint64_t seed = 0;
  double seconds = 0;  ///< that the workers worked
  std::filesystem::path directory{};
  std::uint64_t calls = 0;
  std::uint64_t grants = 0;
  std::map<std::string, std::uint64_t> faults{};  ///< by name; those that began
  std::vector<checks::Finding> findings{};
  int repeats = 0;                          ///< of this round, to see what comes again
  std::map<std::string, int> came_again{};  ///< by check: in so many of the repeats

  [[nodiscard]] std::size_t violations() const;
};

/// Reads the history of a round and judges it. For the first violations of each check the directory then has a text and a
/// picture beside the history: "exclusion-1.txt", "exclusion-1.svg".
/// `porcupine`: its program, asked as well if it was built.
RoundResult judge(const std::filesystem::path& directory,
                  const std::filesystem::path& porcupine = {});

/// "make torture STORE=redlock SEED=7"
std::string command(const RoundResult& round);

/// One line on a round that is over.
void print_progress(std::ostream& out, const RoundResult& round);
/// The table at the end, and each violation with what shows it.
void print(std::ostream& out, const std::vector<RoundResult>& rounds);
Json to_json(const std::vector<RoundResult>& rounds);

}  // namespace torture
