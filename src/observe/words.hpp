// Events and failures as one word each, for programs: timed_out, and not "timed out".
#pragma once

#include <string>
#include <string_view>

#include "interlock/observer.hpp"

namespace interlock::observe {

std::string word(Event event);
std::string_view word(Errc code) noexcept;

}  // namespace interlock::observe
