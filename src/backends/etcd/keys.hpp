// What the keys are called.
//
//     PREFIX name TAB h owner     this owner holds the resource
//     PREFIX name TAB w owner     this owner waits for it
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
  Owner owner;
};

class Keys {
 public:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  [[nodiscard]] std::string key(std::string_view resource, Seat seat, const Owner& owner) const;
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
