// A detached lease as text, safe in any shell: il1.<owner>.<ttl in ms>.<name>[.<name>…], the name
// that was asked for first, names percent-encoded (a dot as %2e).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interlock/claim.hpp"

namespace interlock::core {

struct Token {
  Owner owner;
  Duration ttl{};
  std::vector<std::string> resources;  ///< ancestors included
};

std::string make_token(const Claim& claim, std::string_view first);
/// Throws Error (invalid).
Token parse_token(std::string_view text);

}  // namespace interlock::core
