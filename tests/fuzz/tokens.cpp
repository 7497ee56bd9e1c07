// Tokens of detached leases, and owners: text that goes through shells, files and other programs.
#include <algorithm>

#include "core/token.hpp"
#include "fuzz.hpp"

namespace {

using interlock::core::Token;

std::string encoded(const Token& token) {
  interlock::Claim claim{.owner = token.owner, .ttl = token.ttl};
  for (const auto& name : token.resources) claim.parts.push_back({.resource = name});
  return interlock::core::make_token(claim, token.resources.front());
}

// The first name is written once, however often it is there.
std::vector<std::string> names_of(const Token& token) {
  auto names = token.resources;
  names.erase(std::remove(names.begin() + 1, names.end(), token.resources.front()), names.end());
  return names;
}

}  // namespace

void fuzz::run(std::string_view input) {
  const auto token = accepted([&] { return interlock::core::parse_token(input); });
  if (!token) return;
  require(!token->resources.empty() && !token->owner.empty(), "a token has an owner and a name");
  for (const auto& name : token->resources) interlock::check_resource(name);
  interlock::check_ttl(token->ttl, token->resources.front());
  const auto text = encoded(*token);
  const auto again = accepted([&] { return interlock::core::parse_token(text); });
  require(again && again->owner == token->owner && again->ttl == token->ttl &&
              again->resources == names_of(*token),
          "a token that was accepted is accepted again, and says the same");
  require(encoded(*again) == text, "it has one text");
}
