// What all fuzz targets share. A target is one file with one function, fuzz::run. The same file is linked with libFuzzer
// (make fuzz), and with replay.cpp, which gives it the corpus (make test).
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "interlock/error.hpp"

namespace fuzz {

/// Gives the input to a parser of the project, and throws if a property does not hold. Every target defines it.
void run(std::string_view input);

/// A property. It is no interlock::Error, so nothing takes it for a refusal.
inline void require(bool holds, const std::string& property) {
  if (!holds) throw std::logic_error("does not hold: " + property);
}

/// What a parser makes of its input; nothing if it refuses it with an Error, which has to have words and must not contain
/// the secret. Everything else that it throws is a finding.
template <class Parse>
auto accepted(Parse parse, std::string_view secret = {}) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const interlock::Error& error) {
    const std::string_view words = error.what();
    require(!error.message().empty(), "an error has words");
    require(secret.empty() || words.find(secret) == words.npos, "no error shows a secret");
    return std::nullopt;
  }
}

/// A password that no error has in its own text. (The one of an input may be made of the words of an error.)
inline constexpr std::string_view kSecret = "hunter2";

/// Takes the first line off.
inline std::string_view next_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
  return line;
}

}  // namespace fuzz
