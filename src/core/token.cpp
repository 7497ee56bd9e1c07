#include "core/token.hpp"

#include <charconv>

#include "core/text.hpp"
#include "interlock/error.hpp"

namespace interlock::core {

namespace {

constexpr std::string_view kVersion = "il1";
constexpr std::size_t kMostNames = 1024;  // as check_claim has it

std::string encode(std::string_view name) {
  std::string text;
  for (const char c : percent_encode(name)) {
    if (c == '.') {
      text += "%2e";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string make_token(const Claim& claim, std::string_view first) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(claim.ttl).count();
  std::string text =
      std::string(kVersion) + "." + claim.owner.to_string() + "." + std::to_string(ms);
  text += "." + encode(first);
  for (const auto& part : claim.parts) {
    if (part.resource != first) text += "." + encode(part.resource);
  }
  return text;
}

Token parse_token(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t from = 0; from <= text.size();) {
    const auto dot = std::min(text.find('.', from), text.size());
    fields.push_back(text.substr(from, dot - from));
    from = dot + 1;
    if (fields.size() > 3 + kMostNames) break;
  }
  const auto refuse = [] {
    throw Error(Errc::invalid, "this is not a token of a detached lease; it begins with il1.");
  };
  if (fields.size() < 4 || fields.size() > 3 + kMostNames || fields[0] != kVersion) refuse();
  Token token;
  const auto owner = Owner::parse(fields[1]);
  std::int64_t ms = 0;
  const auto* end = fields[2].data() + fields[2].size();
  const auto [stop, error] = std::from_chars(fields[2].data(), end, ms);
  if (!owner || owner->empty() || error != std::errc{} || stop != end || ms <= 0 ||
      ms > 366LL * 24 * 3600 * 1000) {
    refuse();
  }
  token.owner = *owner;
  token.ttl = std::chrono::milliseconds(ms);
  for (std::size_t i = 3; i < fields.size(); ++i) {
    auto name = percent_decode(fields[i]);
    if (!name) refuse();
    check_resource(*name);
    token.resources.push_back(std::move(*name));
  }
  return token;
}

}  // namespace interlock::core
