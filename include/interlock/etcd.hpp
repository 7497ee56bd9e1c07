// What only etcd can do: let the data itself ask whether a lease still holds.
#pragma once

#include <string>
#include <string_view>

#include "interlock/lease.hpp"

namespace interlock {

/// A compare for a transaction of your own, in the same etcd: `create_revision(key) > 0`. The key is
/// there exactly as long as the lease holds; it has the lease's own owner in its name, and nobody
/// ever writes it again. A transaction with it does nothing once the lease is lost, however late it
/// comes: what a fence does for other stores, with nothing to remember.
///
///     auto guard = etcd_guard(lease);
///     txn.If(Compare(CreateRevision(guard.key), ">", 0)).Then(OpPut("/config", …)).Commit()
struct EtcdGuard {
  std::string key{};

  /// The same as a line for `etcdctl txn`: create("…") > "0"
  [[nodiscard]] std::string etcdctl() const;
};

/// For a lease of an etcd store with this prefix; the guard of resource(), or of the one named. An
/// upgrade or a downgrade has a new owner, and so a new guard. Throws Error (invalid) if the lease
/// holds no such resource.
EtcdGuard etcd_guard(const Lease& lease, std::string_view resource = {},
                     std::string_view prefix = "interlock/");

}  // namespace interlock
