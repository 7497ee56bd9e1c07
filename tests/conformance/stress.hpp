// The stress of stress_test.cpp, for stores that want it harder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "interlock/backend.hpp"

namespace interlock::conformance {

/// Five threads over three clients, for two seconds a round. `errors_are_due`: the store fails now
/// and then, and says so.
void stress(const std::function<std::unique_ptr<Backend>()>& open, bool errors_are_due);

/// A number from the environment, for seeds and the like.
std::uint64_t from_environment(const char* name, std::uint64_t fallback);

}  // namespace interlock::conformance
