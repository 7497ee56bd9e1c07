// What happens, in words.
#pragma once

#include <string>

#include "backends/redis/redlock_votes.hpp"

namespace simulation {

std::string describe(const interlock::redis::Message& message);
std::string describe(const interlock::redis::Vote& vote);
std::string describe(const interlock::Answer& answer);
std::string describe(const interlock::Claim& claim);

}  // namespace simulation
