// The names of a lock's keys in Redis, and in which of a cluster's slots they lie.
//
// The lock itself is `prefix + resource`, as other libraries name it. Everything else about it has
// the same hash tag and begins with a brace, which no prefix does, so that no resource can be named
// like another one's side key:
//
//     interlock:orders                 the lock
//     {interlock:orders}:queue         one of its side keys
//     interlock:{eu}:orders            a lock whose user chose the hash tag
//     {eu}interlock:{eu}:orders:queue  one of its side keys
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::redis {

/// Of a cluster.
inline constexpr std::uint16_t kSlots = 16384;

/// The hash slot of a key: of its hash tag, if it has one.
std::uint16_t slot_of(std::string_view key) noexcept;

/// A text for each slot that begins like this and lies in it.
std::vector<std::string> texts_in_slots(const std::string& begin);

class KeyNames {
 public:
  /// Throws Error (invalid) for a prefix that begins with a brace or has control characters.
  explicit KeyNames(std::string prefix);

  struct Lock {
    std::string lock;
    std::string queue;
    std::string who;
  };
  /// Throws Error (invalid) for a name that would look like a side key (only without a prefix).
  [[nodiscard]] Lock of(std::string_view resource) const;

  /// What the names of all side keys of a lock begin with.
  [[nodiscard]] std::string side(std::string_view resource) const;

  /// The counter behind all fences of this prefix: of a server, or of one slot of a cluster.
  [[nodiscard]] std::string fence() const;
  [[nodiscard]] static std::string fence(std::string_view text_in_slot);

  /// A pattern for SCAN that every lock and every queue of this prefix matches, and not much else.
  [[nodiscard]] std::string pattern(std::string_view resource_prefix) const;
  /// The resource, if this is the key of a lock or of a queue.
  [[nodiscard]] std::optional<std::string> resource_of(std::string_view key) const;

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

 private:
  std::string prefix_;
};

}  // namespace interlock::redis
