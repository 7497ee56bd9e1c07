// What several parts know about a Who.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "interlock/claim.hpp"

namespace interlock {

// In stores whose records have no places of their own for them, the actor and the owner id stand behind
// the label: label, actor, owner id, each after a control character, which none of them can contain.
// What is empty at the end is left out.

inline std::string label_and_names(const Who& who) {
  auto text = who.label;
  if (!who.actor.empty() || !who.owner_id.empty()) text.append(1, '\x1f').append(who.actor);
  if (!who.owner_id.empty()) text.append(1, '\x1f').append(who.owner_id);
  return text;
}

/// The label alone.
inline std::string_view label_in(std::string_view stored) {
  return stored.substr(0, stored.find('\x1f'));
}

inline void read_label_and_names(std::string_view stored, Who& who) {
  const auto take = [&stored] {
    const auto text = stored.substr(0, stored.find('\x1f'));
    stored.remove_prefix(std::min(text.size() + 1, stored.size()));
    return text;
  };
  who.label = take();
  who.actor = take();
  who.owner_id = take();
}

}  // namespace interlock
