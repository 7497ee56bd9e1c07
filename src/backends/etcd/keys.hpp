// What the keys are called.
//
//     PREFIX name TAB h x         the exclusive holder of the resource
//     PREFIX name TAB h chair     any other holder: it shares, has slots, or holds it once more
//     PREFIX name TAB w chair     somebody who waits for it
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

enum class Seat : char { holds = 'h', waits = 'w' };

struct Range {
  std::string begin;
  std::string end;  ///< the first key after it
};

struct Place {
  std::string_view resource;
  Seat seat = Seat::holds;
  std::string_view chair;
};

class Keys {
 public:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The exclusive holder's.
  static constexpr std::string_view kExclusive = "x";
  [[nodiscard]] std::string key(std::string_view resource, Seat seat, std::string_view chair) const;
  /// No resource's: where a client takes back what it sent.
  [[nodiscard]] std::string recall(std::string_view client) const;
  /// All keys of a resource.
  [[nodiscard]] Range row(std::string_view resource) const;
  /// Those of its holders.
  [[nodiscard]] Range holders(std::string_view resource) const;
  /// All resources whose names begin like this.
  [[nodiscard]] Range all(std::string_view name_prefix) const;
  /// The other way round; nothing if it is no key of ours. Points into `key`.
  [[nodiscard]] std::optional<Place> parse(std::string_view key) const;

 private:
  std::string prefix_;
};

}  // namespace interlock::etcd
