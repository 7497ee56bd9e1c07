// What a server says, without what nobody may see.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/error.hpp"

namespace interlock::core {

/// Passwords and tokens of one connection. Some servers repeat them in their errors, and a hostile one does so wherever
/// its words are shown. Not thread-safe.
class Secrets {
 public:
  Secrets() = default;
  Secrets(std::initializer_list<std::string_view> secrets) {
    for (const auto secret : secrets) add(secret);
  }
  void add(std::string_view secret);

  /// The text with *** for each secret, as it is or percent-encoded. Before the text is cut: a part of a secret is not
  /// found. A secret of less than four letters is looked for as a word of its own only: it would be found in all kinds
  /// of words, which then say what it is.
  [[nodiscard]] std::string hide(std::string_view text) const;
  [[nodiscard]] Error hide(const Error& error) const;

 private:
  std::vector<std::string> secrets_;  ///< the longest one first, as it may contain others
};

}  // namespace interlock::core
