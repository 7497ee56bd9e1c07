#include "core/secrets.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace interlock::core {

namespace {

constexpr std::size_t kShortest = 4;  // that is looked for within words

bool in_word(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;  // also before the first
  const char c = text[at];
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// How much of the text's beginning spells the secret, with any of its letters percent-encoded; 0: it does not.
std::size_t spelled(std::string_view text, std::string_view secret) {
  if (text.starts_with(secret)) return secret.size();
  std::size_t at = 0;
  for (const char c : secret) {
    constexpr std::size_t kEncoded = 3;
    const auto next = text.substr(std::min(at, text.size()));
    if (next.starts_with('%') && percent_decode(next.substr(0, kEncoded)) == std::string(1, c)) {
      at += kEncoded;
    } else if (next.starts_with(c) || (c == ' ' && next.starts_with('+'))) {
      ++at;
    } else {
      return 0;
    }
  }
  return at;
}

}  // namespace

void Secrets::add(std::string_view secret) {
  if (secret.empty() || std::find(secrets_.begin(), secrets_.end(), secret) != secrets_.end())
    return;
  const auto place = std::find_if(secrets_.begin(), secrets_.end(), [&](const std::string& other) {
    return other.size() < secret.size();
  });
  secrets_.emplace(place, secret);
}

std::string Secrets::hide(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    for (const auto& secret : secrets_) {
      length = spelled(text.substr(at), secret);
      if (secret.size() < kShortest && (in_word(text, at - 1) || in_word(text, at + length)))
        length = 0;
      if (length > 0) break;
    }
    if (length == 0) {
      out += text[at++];
    } else {
      out += "***";
      at += length;
    }
  }
  return out;
}

Error Secrets::hide(const Error& error) const {
  return {error.errc(),
          hide(error.message()),
          {.resource = error.resource(), .node = error.node(), .maybe_held = error.maybe_held()}};
}

}  // namespace interlock::core
