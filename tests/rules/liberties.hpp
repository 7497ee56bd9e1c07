// In what a store may differ from the lock table, each with its reason; and what both said, in words.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::rules_walk {

using namespace std::chrono_literals;

struct Liberties {
  bool remembers_places = false;  ///< how many are ahead, it knows from when it last looked
  bool one_shot_leaves = false;   ///< one in line that asks once more, and not to wait, is out
  bool plain = false;             ///< asked for nothing but what it has a short way for
  /// An owner that was taken over from does not come back under its old name. (No client does that.)
  bool taken_over_is_gone = false;
  /// On a store whose time can't be moved: a waiter that has not asked for so long may be forgotten.
  Duration silence = std::chrono::hours(1);

  // How long a place in line lasts. The table knows one such time; docs/guarantees.md has those of the stores.
  Duration place_lasts = std::chrono::hours(1);  ///< without a heartbeat
  std::optional<Duration>
      told_lasts{};                ///< and this long for a waiter that was told that it is its turn
  bool told_readers_last = false;  ///< of those who are told, this holds for writers only

  /// Wakes more than are next: its waiters watch others, and look for themselves when these go. Never fewer, of those
  /// who could have all that they wait for.
  bool wakes_more = false;
  /// Leaves out a waiter for several resources that fits in the row that changed and still has to wait in another one: it
  /// would ask in vain. The row that it waits for in the end wakes it.
  bool spares_those_who_wait_elsewhere = false;
  bool tells_the_asker = false;  ///< number 2 of known.md
  bool identities_look = false;  ///< number 1 of known.md
  /// Looks again sooner than the table says, as nobody tells of a waiter that died when it was woken.
  std::optional<Duration> first_looks{};
  std::optional<Duration> second_looks{};
  /// Where a holder is in the way, it looks when that ends, and not when a waiter ahead is forgotten, which lets nobody in.
  bool looks_past_waiters = false;
  /// It asks for the end of the first holder and not for whose: that may be a reader of its own identity, or the hold that
  /// it takes over from. So it looks too soon, and waits on.
  bool looks_at_any_holder = false;
  /// Says when to look again in its own way: its waiters watch those ahead, or a majority of its servers has to agree.
  bool looks_in_its_own_way = false;
};

inline std::string describe(const Answer& answer) {
  static const char* const kNames[] = {"granted", "queued", "busy", "lost", "unknown"};
  std::string text = kNames[static_cast<int>(answer.verdict)];
  if (answer.why) text += " (" + std::to_string(static_cast<int>(answer.why->errc())) + ")";
  return text;
}

inline std::string describe(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + "ms";
}

inline std::string describe(const Claim& claim) {
  auto text = claim.owner.brief();
  if (!claim.instead_of.empty()) text += " instead of " + claim.instead_of.brief();
  if (!claim.who->identity.empty()) text += " as " + claim.who->identity;
  if (claim.who->host.empty()) text += " without host";
  if (claim.priority != 0) text += " first";
  text += " " + describe(claim.ttl);
  for (const auto& part : claim.parts) {
    text += " " + part.resource + ":" + std::string(to_string(part.mode));
    if (part.mode == Mode::slots)
      text += std::to_string(part.slots) + "/" + std::to_string(part.capacity);
  }
  return text;
}

/// Who holds and who waits, in words; `timed`: and for how long.
inline std::string describe(const std::vector<ResourceState>& states, bool timed) {
  const auto entry = [timed](const Entry& one) {
    auto text = one.owner.brief() + std::string(to_string(one.mode));
    if (timed) text += " for " + describe(one.remaining);
    return text;
  };
  std::string text;
  for (const auto& state : states) {
    text += state.resource + " " + std::to_string(state.capacity) + ":";
    std::vector<std::string> holders;
    for (const auto& holder : state.holders) holders.push_back(entry(holder));
    std::sort(holders.begin(), holders.end());
    for (const auto& holder : holders) text += " " + holder;
    text += " |";
    for (const auto& waiter : state.waiters) text += " " + entry(waiter);
    text += "\n";
  }
  return text;
}

}  // namespace interlock::rules_walk
