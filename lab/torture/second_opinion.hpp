// Asks Porcupine, a checker of linearizability that others wrote: lab/torture/porcupine.
#pragma once

#include <filesystem>
#include <optional>

#include "checks/checks.hpp"

namespace torture {

/// Its answer for the plain mutexes of a history, also in "porcupine.json" there, with a picture in "porcupine.html" if
/// they are not in order. Nothing if the program was not built. Throws std::exception if it can't judge.
std::optional<checks::Finding> second_opinion(const std::filesystem::path& program,
                                              const std::filesystem::path& directory);

}  // namespace torture
