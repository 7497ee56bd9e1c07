// Where the data is, the fence has to count: a holder that was stopped, lost its lease and woke up again
// can be refused there, and nowhere else.
//
// The rule, for reads and for writes: whoever comes with a larger fence than all before is let in, and
// shuts out all older ones from then on; with an equal one, only the same owner is. Reads count, too: a
// stopped holder may otherwise read what its successor is about to change.
//
// This is for exclusive leases. Readers that hold a lock together have different fences, and so have those
// who share a semaphore: the newest one to come would shut out all the others, which are as good.
//
// Of an owner, only brief() is stored: who knows all of it can release the lease.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "interlock/lease.hpp"

namespace interlock {

/// lease.fence() if it is the only one that counts. Throws Error (unsupported) unless the lease is an
/// exclusive one of a store that has fences.
Fence exclusive_fence(const Lease& lease);

/// What a data store keeps beside a record, to decide who may touch it. Not thread-safe.
class FenceGate {
 public:
  /// True: let in, and remembered.
  bool admit(Fence fence, std::string_view owner) {
    if (fence < newest_ || (fence == newest_ && owner != owner_)) return false;
    newest_ = fence;
    owner_ = owner;
    return true;
  }
  [[nodiscard]] Fence newest() const noexcept { return newest_; }

 private:
  Fence newest_{};
  std::string owner_;
};

/// A value that lets in only the newest holder: for tests, and to show how it is done. Thread-safe.
///
/// Leases with the same identity share a fence and are different owners; here the first one to come is
/// let in. Shared leases and slots are refused: Error (unsupported).
template <class T>
class FencedValue {
 public:
  FencedValue() = default;
  explicit FencedValue(T value) : value_(std::move(value)) {}

  /// Nothing: refused, as a newer holder was here.
  [[nodiscard]] std::optional<T> read(const Lease& lease) {
    return read(exclusive_fence(lease), lease.owner().brief());
  }
  /// False: refused.
  [[nodiscard]] bool write(const Lease& lease, T value) {
    return write(exclusive_fence(lease), lease.owner().brief(), std::move(value));
  }

  // The same on the other side of a wire, where there is no lease but what came along with the request.
  [[nodiscard]] std::optional<T> read(Fence fence, std::string_view owner) {
    const std::lock_guard lock(mutex_);
    if (!gate_.admit(fence, owner)) return std::nullopt;
    return value_;
  }
  [[nodiscard]] bool write(Fence fence, std::string_view owner, T value) {
    const std::lock_guard lock(mutex_);
    if (!gate_.admit(fence, owner)) return false;
    value_ = std::move(value);
    return true;
  }

 private:
  std::mutex mutex_;
  FenceGate gate_;
  T value_{};
};

/// The rule in SQL, for rows that have two more columns:
///
///     ALTER TABLE invoices ADD fence bigint NOT NULL DEFAULT 0,
///                          ADD fence_owner text NOT NULL DEFAULT '';
///
/// A write, with exclusive_fence(lease).value and lease.owner().brief() as $1 and $2:
///
///     "UPDATE invoices SET total = $3, " + sql.assign + " WHERE id = $4 AND " + sql.admits
///
/// A read changes nothing but the fence: `"UPDATE invoices SET " + sql.assign + " WHERE id = $3 AND " +
/// sql.admits + " RETURNING total"`. No row came of it: refused. Both have to be committed before the
/// lease's holder relies on them.
struct SqlFence {
  std::string assign{};
  std::string admits{};
};

/// For the placeholders that your database understands: "$1", ":fence", "?1".
SqlFence sql_fence(std::string_view fence = "$1", std::string_view owner = "$2");

/// The rule in Lua, to be put before a script of your own for Redis. KEYS[1] is a key that remembers the
/// fence (a hash; in a cluster in the slot of the data: `{invoice:42}:fence`), ARGV[1] the exclusive_fence(),
/// ARGV[2] the owner's brief(); the rest is yours:
///
///     EVAL redis_fence() + "return redis.call('SET', KEYS[2], ARGV[3])" 2 fence-key key 17 ab12cd34 value
///
/// Refused: an error that begins with FENCED, and nothing of yours has run. The key has to live as long
/// as the data does.
std::string_view redis_fence();

// For etcd there is more: etcd_guard (etcd.hpp) is a compare that is true exactly while the lease holds.

}  // namespace interlock
