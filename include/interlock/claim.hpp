// The one thing that is ever asked of a store: a claim. Mutex, RwLock, Semaphore and MultiLock are
// ways to write one.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/clock.hpp"
#include "interlock/error.hpp"

namespace interlock {

/// 128 random bits, fresh for every acquisition, never reused, never guessable. Whoever knows it
/// can release the lease, so show it to nobody who must not: `brief` is for logs.
struct Owner {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// From the kernel's random source; never the same in a forked child.
  static Owner random();
  /// 32 hexadecimal digits, or nothing.
  static std::optional<Owner> parse(std::string_view hex);

  [[nodiscard]] std::string to_string() const;  ///< 32 hexadecimal digits
  [[nodiscard]] std::string brief() const;      ///< the first 8 of them
  [[nodiscard]] bool empty() const noexcept { return high == 0 && low == 0; }
  auto operator<=>(const Owner&) const = default;
};

/// Grows from one grant of a resource to the next. Hand it to whatever the lock protects, and let
/// that refuse a number smaller than one it has seen: then even a holder that was stopped, lost its
/// lease and woke up again can't do harm.
struct Fence {
  std::uint64_t value = 0;
  auto operator<=>(const Fence&) const = default;
};

enum class Mode : std::uint8_t {
  exclusive,  ///< excludes everybody
  shared,     ///< excludes exclusive
  slots,      ///< n of N at once
};

std::string_view to_string(Mode mode) noexcept;

/// One resource of a claim.
struct Part {
  std::string resource{};
  Mode mode = Mode::exclusive;
  std::uint32_t slots = 1;     ///< how many slots, for Mode::slots
  std::uint32_t capacity = 0;  ///< out of how many; all clients have to agree on it
  bool ancestor = false;       ///< held shared only because a resource below it is claimed

  bool operator==(const Part&) const = default;
};

/// Who asks, for people who look: it decides nothing, except that a store on the same host may
/// notice that the process is gone, and that equal identities do not exclude each other.
struct Who {
  std::string label{};     ///< what for, in the user's words; may be empty
  std::string identity{};  ///< re-entrancy: claims of one identity don't exclude each other
  std::string host{};
  std::int64_t pid = 0;  ///< the process whose end ends the claim; 0: none, only the TTL does

  bool tied = true;  ///< false: the pid is only shown, and its end ends nothing

  std::string actor{};  ///< deadlocks: whose wait and holds belong together; see Options::actor

  std::string owner_id{};  ///< the owner's name for people, see Options::owner_id; may be empty

  bool operator==(const Who&) const = default;
};

/// What one acquisition asks for: all of it is granted, or none.
struct Claim {
  Owner owner{};
  std::vector<Part> parts{};  ///< sorted by name, no name twice; see `normalize`
  Duration ttl{};
  std::int32_t priority = 0;  ///< higher goes first
  std::shared_ptr<const Who> who{};
  /// Takes over, in one step, what this owner holds (the same resources in other modes): how a
  /// writer becomes a reader and back. A new owner for the new claim, so that a late copy of an
  /// old message can't undo it. Empty: none.
  Owner instead_of{};

  [[nodiscard]] const Part* find(std::string_view resource) const noexcept;
};

/// Sorts parts by name and merges what is named twice (the stronger mode wins; a name asked for
/// both as slots and otherwise is an Error). With `hierarchy`, adds the ancestors of every
/// `a/b/c` as shared parts, so that whoever holds `a` exclusively excludes all of `a/…`.
void normalize(std::vector<Part>& parts, bool hierarchy);

/// The names above this one: "a/b/c" gives "a" and "a/b". A slash at either end or next to another
/// one separates nothing ("https://host/x" gives "https://host").
std::vector<std::string> ancestors(std::string_view resource);

// Validation, before any I/O. Each throws Error that names the value and the rule: invalid, or what is
// said there.

/// 1 to 512 bytes of UTF-8 without control characters.
void check_resource(std::string_view resource);
/// Labels and identities: up to 1024 bytes of UTF-8 without control characters; may be empty.
void check_text(std::string_view what, std::string_view text, Errc code = Errc::invalid);
/// From a millisecond to a year. Throws Error (invalid_ttl).
void check_ttl(Duration ttl, std::string_view resource);
/// All of the above, and: an owner (or invalid_owner), at least one part, at most 1024, slots within
/// capacity.
void check_claim(const Claim& claim);

}  // namespace interlock

template <>
struct std::hash<interlock::Owner> {
  std::size_t operator()(const interlock::Owner& owner) const noexcept { return owner.low; }
};
