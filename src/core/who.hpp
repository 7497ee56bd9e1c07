// What several parts know about a Who.
#pragma once

#include <string>
#include <string_view>

#include "interlock/claim.hpp"

namespace interlock {

// In stores whose records have no place of its own for it, the actor stands behind the label and a
// control character, which neither can contain.

inline std::string label_and_actor(const Who& who) {
  return who.actor.empty() ? who.label : who.label + '\x1f' + who.actor;
}

/// The label without the actor.
inline std::string_view label_in(std::string_view stored) {
  return stored.substr(0, stored.find('\x1f'));
}

inline void read_label_and_actor(std::string_view stored, Who& who) {
  who.label = label_in(stored);
  const auto end = stored.find('\x1f');
  who.actor = end == std::string_view::npos ? std::string_view() : stored.substr(end + 1);
}

}  // namespace interlock
