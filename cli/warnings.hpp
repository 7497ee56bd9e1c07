// What the store warns of, on stderr, where nobody asked for a log.
#pragma once

#include <memory>

#include "interlock/observer.hpp"

namespace cli {

/// Tells each warning once, also one that comes only when a server is reached.
std::shared_ptr<interlock::Observer> make_warnings();

}  // namespace cli
