// The wall clock of a program, to be set while it runs.
#pragma once

#include <filesystem>

#include "torture/shared_number.hpp"

namespace torture {

/// So many seconds ahead of the right time. Of programs that have its variable in their environment, and what preload/ has
/// preloaded.
class WallClock : public SharedNumber {
 public:
  explicit WallClock(std::filesystem::path file) : SharedNumber("TORTURE_CLOCK", std::move(file)) {}
};

}  // namespace torture
