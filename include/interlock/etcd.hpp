// What only etcd can do: let the data itself ask whether a lease still holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interlock/lease.hpp"

namespace interlock {

/// A compare for a transaction of your own, in the same etcd: the key is there since this revision.
/// That is so exactly as long as the lease holds, so a transaction with it does nothing once the
/// lease is lost, however late it comes: what a fence does for other stores, with nothing to
/// remember.
///
///     auto guard = etcd_guard(lease);
///     txn.If(Compare(CreateRevision(guard.key), "=", guard.create_revision)).Then(…).Commit()
struct EtcdGuard {
  std::string key{};
  std::int64_t create_revision = 0;

  /// The same as a line for `etcdctl txn`: create("…") = "…"
  [[nodiscard]] std::string etcdctl() const;
};

/// For an exclusive lease of an etcd store with this prefix; the guard of resource(), or of the one
/// named. After an upgrade it is another one, and there is none for what was exclusive before a
/// change of something else: that guard lets nothing through. Throws Error (invalid) if the lease
/// holds no such resource, and (unsupported) if there is nothing to compare: a shared lease, slots of a
/// semaphore, a lease of another store.
EtcdGuard etcd_guard(const Lease& lease, std::string_view resource = {},
                     std::string_view prefix = "interlock/");

}  // namespace interlock
