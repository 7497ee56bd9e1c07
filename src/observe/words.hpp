// Failures as one word each, for programs: timed_out, and not "timed out".
#pragma once

#include <string_view>

#include "interlock/error.hpp"

namespace interlock::observe {

std::string_view word(Errc code) noexcept;

}  // namespace interlock::observe
