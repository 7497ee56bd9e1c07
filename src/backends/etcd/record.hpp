// What stands in a key: a line of JSON that people can read, too.
//
//     {"interlock":1,"owner":"8f0c…","mode":"exclusive","ttl":30000,"since":1763212345678,"host":"db1","pid":4711}
//
// `ttl` (ms) counts from when the key was last written; there is no clock in it. `since` is a wall
// clock's, and only shown. What has its usual value is left out.
#pragma once

#include <string>
#include <string_view>

#include "core/lock_table.hpp"

namespace interlock::etcd {

/// Of the values. It moves with every change of what they hold.
inline constexpr std::uint64_t kFormat = 1;

struct Value {
  Record record{};  ///< without its expiry
  Duration ttl{};
  bool stronger = false;  ///< a waiter that holds already
};

std::string encode(const Value& value, TimePoint now);
/// Throws Error that names the key: corrupt, or refused, if it is of another format.
Value decode(std::string_view text, TimePoint now, std::string_view key);

}  // namespace interlock::etcd
