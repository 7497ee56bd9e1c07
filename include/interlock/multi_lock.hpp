// Several resources, all or nothing.
#pragma once

#include <initializer_list>

#include "interlock/acquirer.hpp"

namespace interlock {

inline Part exclusive(std::string name) { return {.resource = std::move(name)}; }
inline Part shared(std::string name) { return {.resource = std::move(name), .mode = Mode::shared}; }
inline Part slots(std::string name, std::uint32_t count, std::uint32_t capacity) {
  return {.resource = std::move(name), .mode = Mode::slots, .slots = count, .capacity = capacity};
}

/// One lease on all of them, or none: never half-taken, so no order to agree on, and no deadlock among
/// those who take all that they need in one call. A name given twice is one name. Sets without a common
/// name never wait for each other. Lease::release({…}) gives some back early.
///
/// While it waits it holds nothing, but it has its place in the line of each name, also of those that
/// are free. So who holds `a` and then asks for `b` waits behind a queued `{a, b}`, which waits for `a`: a
/// deadlock. It is found if both have an actor (deadlock.hpp), and a bounded wait ends it.
///
///     MultiLock both(locks, {"account:1", "account:2"});
///     MultiLock mixed(locks, {exclusive("report"), shared("config"), slots("workers", 2, 8)});
class MultiLock : public Acquirer {
 public:
  MultiLock(Client client, std::vector<Part> parts, Options options = {})
      : Acquirer(std::move(client), std::move(parts), std::move(options)) {}
  MultiLock(Client client, const std::vector<std::string>& names, Options options = {})
      : Acquirer(std::move(client), all_exclusive(names), std::move(options)) {}
  MultiLock(Client client, std::initializer_list<const char*> names, Options options = {})
      : MultiLock(std::move(client), std::vector<std::string>(names.begin(), names.end()),
                  std::move(options)) {}

 private:
  static std::vector<Part> all_exclusive(const std::vector<std::string>& names) {
    std::vector<Part> parts;
    parts.reserve(names.size());
    for (const auto& name : names) parts.push_back(exclusive(name));
    return parts;
  }
};

}  // namespace interlock
