// What the keys are called.
//
//     PREFIX name TAB h x         the exclusive holder of the resource
//     PREFIX name TAB h chair     another holder: it has slots, or holds it once more
//     PREFIX name TAB s chair     somebody who shares it
//     PREFIX name TAB v chair     somebody who waits, with a priority, or because it wants more
//     PREFIX name TAB w chair     somebody who waits, in order of arrival
//     PREFIX name TAB x chair     the same, to share it
//     PREFIX TAB r client         what this client sent before it was written counts no more
//
// No name has control characters, so the tab ends it, and the keys of a resource (its row) are the
// range from TAB to the next character. Rows are ordered as their names are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "interlock/claim.hpp"

namespace interlock::etcd {

enum class Seat { holds, waits };

/// By these a transaction tells apart, without reading them, who is in whose way.
enum class Letter : char { holds = 'h', shares = 's', hurries = 'v', waits = 'w', reads = 'x' };

[[nodiscard]] constexpr Seat seat_of(Letter letter) {
  return letter == Letter::holds || letter == Letter::shares ? Seat::holds : Seat::waits;
}

[[nodiscard]] constexpr Letter holders_letter(Mode mode) {
  return mode == Mode::shared ? Letter::shares : Letter::holds;
}

struct Range {
  std::string begin;
  std::string end;  ///< the first key after it
};

struct Place {
  std::string_view resource;
  Letter letter = Letter::holds;
  std::string_view chair;
};

class Keys {
 public:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The exclusive holder's.
  static constexpr std::string_view kExclusive = "x";
  [[nodiscard]] std::string key(std::string_view resource, Letter letter,
                                std::string_view chair) const;
  /// No resource's: where a client takes back what it sent.
  [[nodiscard]] std::string recall(std::string_view client) const;
  /// All keys of a resource.
  [[nodiscard]] Range row(std::string_view resource) const;
  /// Those with these letters, and with all in between.
  [[nodiscard]] Range range(std::string_view resource, Letter first, Letter last) const;
  [[nodiscard]] Range range(std::string_view resource, Letter only) const {
    return range(resource, only, only);
  }
  /// Those of its holders.
  [[nodiscard]] Range holders(std::string_view resource) const {
    return range(resource, Letter::holds, Letter::shares);
  }
  /// All resources whose names begin like this.
  [[nodiscard]] Range all(std::string_view name_prefix) const;
  /// The other way round; nothing if it is no key of ours. Points into `key`.
  [[nodiscard]] std::optional<Place> parse(std::string_view key) const;

 private:
  std::string prefix_;
};

}  // namespace interlock::etcd
