#include "interlock/claim.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "interlock/duration.hpp"
#include "interlock/error.hpp"

namespace interlock {

namespace {

constexpr std::size_t kLongestName = 512;
constexpr std::size_t kLongestText = 1024;
constexpr std::size_t kMostParts = 1024;
constexpr std::size_t kDeepest = 32;
constexpr Duration kShortestTtl = std::chrono::milliseconds(1);
constexpr Duration kLongestTtl = std::chrono::hours(24 * 366);

}  // namespace

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::exclusive:
      return "exclusive";
    case Mode::shared:
      return "shared";
    case Mode::slots:
      return "slots";
  }
  return "?";
}

const Part* Claim::find(std::string_view resource) const noexcept {
  const auto it = std::find_if(parts.begin(), parts.end(),
                               [&](const Part& p) { return p.resource == resource; });
  return it == parts.end() ? nullptr : &*it;
}

std::vector<std::string> ancestors(std::string_view resource) {
  std::vector<std::string> found;
  for (std::size_t i = 1; i + 1 < resource.size(); ++i) {
    if (resource[i] == '/' && resource[i - 1] != '/' && resource[i + 1] != '/') {
      found.emplace_back(resource.substr(0, i));
    }
  }
  return found;
}

void normalize(std::vector<Part>& parts, bool hierarchy) {
  if (hierarchy) {
    const auto asked = parts.size();
    for (std::size_t i = 0; i < asked; ++i) {
      auto above = ancestors(parts[i].resource);
      if (above.size() > kDeepest) {
        throw Error(Errc::invalid,
                    "the name is nested more than " + std::to_string(kDeepest) +
                        " deep; turn the option `hierarchy` off if its slashes mean nothing",
                    {.resource = parts[i].resource, .node = {}, .maybe_held = false});
      }
      for (auto& name : above) {
        parts.push_back({.resource = std::move(name), .mode = Mode::shared, .ancestor = true});
      }
    }
  }
  if (parts.size() < 2) return;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.resource < b.resource; });
  std::vector<Part> merged;
  for (auto& part : parts) {
    if (merged.empty() || merged.back().resource != part.resource) {
      merged.push_back(std::move(part));
      continue;
    }
    Part& same = merged.back();
    if ((same.mode == Mode::slots) != (part.mode == Mode::slots) ||
        (same.mode == Mode::slots &&
         (same.slots != part.slots || same.capacity != part.capacity))) {
      throw Error(Errc::invalid, "one claim asks for it in two ways that don't go together",
                  {.resource = part.resource, .node = {}, .maybe_held = false});
    }
    if (part.mode == Mode::exclusive) same.mode = Mode::exclusive;
    same.ancestor = same.ancestor && part.ancestor;
  }
  parts = std::move(merged);
}

void check_resource(std::string_view resource) {
  const auto refuse = [&](const std::string& rule) {
    throw Error(Errc::invalid, rule,
                {.resource = printable(resource, 60), .node = {}, .maybe_held = false});
  };
  if (resource.empty()) refuse("a resource needs a name of 1 to 512 bytes");
  if (resource.size() > kLongestName) {
    refuse("the name has " + std::to_string(resource.size()) + " bytes; 512 are the most");
  }
  if (!is_plain_utf8(resource)) refuse("the name has to be UTF-8 without control characters");
}

void check_text(std::string_view what, std::string_view text, Errc code) {
  if (text.size() > kLongestText) {
    throw Error(code, std::string(what) + " has " + std::to_string(text.size()) +
                          " bytes; 1024 are the most");
  }
  if (!is_plain_utf8(text)) {
    throw Error(code, std::string(what) + " has to be UTF-8 without control characters");
  }
}

void check_ttl(Duration ttl, std::string_view resource) {
  if (ttl >= kShortestTtl && ttl <= kLongestTtl) return;
  throw Error(Errc::invalid_ttl,
              "a time to live of " + format_duration(ttl) +
                  " is not possible; 1ms to a year are, 30s is usual",
              {.resource = std::string(resource), .node = {}, .maybe_held = false});
}

void check_claim(const Claim& claim) {
  if (claim.parts.empty()) throw Error(Errc::invalid, "a claim needs at least one resource");
  if (claim.parts.size() > kMostParts) {
    throw Error(Errc::invalid, "a claim on " + std::to_string(claim.parts.size()) +
                                   " resources (ancestors included); 1024 are the most");
  }
  if (claim.owner.empty()) {
    throw Error(Errc::invalid_owner, "a claim needs an owner",
                {.resource = claim.parts.front().resource, .node = {}, .maybe_held = false});
  }
  for (const auto& part : claim.parts) {
    check_resource(part.resource);
    if (part.mode != Mode::slots) continue;
    if (part.capacity == 0 || part.slots == 0 || part.slots > part.capacity) {
      throw Error(Errc::invalid,
                  std::to_string(part.slots) + " of " + std::to_string(part.capacity) +
                      " slots can never be had; ask for 1 to capacity",
                  {.resource = part.resource, .node = {}, .maybe_held = false});
    }
  }
  check_ttl(claim.ttl, claim.parts.front().resource);
  try {
    check_text("the label", claim.who->label);
    check_text("the actor", claim.who->actor);
    check_text("the identity", claim.who->identity, Errc::invalid_owner);
    check_text("the owner id", claim.who->owner_id, Errc::invalid_owner);
  } catch (const Error& error) {
    throw error.about(claim.parts.front().resource);
  }
}

}  // namespace interlock
