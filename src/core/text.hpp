// Small things about text that several parts need.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace interlock {

/// Well-formed UTF-8 (no overlong forms, no surrogates) without control characters.
bool is_plain_utf8(std::string_view text) noexcept;

/// For error texts: control characters and broken bytes as \xNN, cut to `most` bytes.
std::string printable(std::string_view text, std::size_t most);

/// Everything but letters, digits and "-._~" as %NN.
std::string percent_encode(std::string_view text);
/// Nothing if a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace interlock
