// Who holds what, who waits, and since when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/error.hpp"

namespace interlock {

/// Which resources to look at: those named, or (none named) all that begin with `prefix`.
struct Query {
  std::vector<std::string> resources{};
  std::string prefix{};
};

/// One holder or waiter of one resource.
struct Entry {
  Owner owner{};
  Who who{};
  Mode mode = Mode::exclusive;
  std::uint32_t slots = 1;
  bool ancestor = false;  ///< only because something below it is claimed
  std::int32_t priority = 0;
  Fence fence{};         ///< holders only
  Duration age{};        ///< held or waited for so long
  Duration remaining{};  ///< until the store drops it, unless it is renewed
};

struct ResourceState {
  std::string resource{};
  std::uint32_t capacity = 0;  ///< of a semaphore
  std::vector<Entry> holders{};
  std::vector<Entry> waiters{};  ///< first come first
};

struct Snapshot {
  std::vector<ResourceState> resources{};  ///< only those held or waited for, sorted by name
  std::optional<Error> why{};              ///< set if the store could not be read
  /// False: the first lock has to make something in the store, such as PostgreSQL's schema. Nothing is held then.
  bool made = true;
  std::optional<Error> unmakeable{};  ///< why this client can't make it
};

}  // namespace interlock
