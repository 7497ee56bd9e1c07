// The flock of one or more shards, held for one critical section.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backends/file/directory.hpp"
#include "backends/file/fork_gate.hpp"
#include "backends/file/shard.hpp"

namespace interlock::file {

enum class Access {
  read,   ///< with other readers. Makes no files: a shard without a lock file is empty
  write,  ///< alone
};

/// Locks are flocks of `0a3.lock`, which is made once and never unlinked or replaced: whoever locks
/// a file that is not in the directory any more would lock it for nobody else.
class ShardLocks {
 public:
  /// All of them (sorted), or none: then `blocker` is one that somebody else holds. Waits a
  /// millisecond or so, since a critical section takes less. Throws Error.
  static std::optional<ShardLocks> try_take(const Directory& directory,
                                            std::span<const ShardId> shards, Access access,
                                            ShardId& blocker);

  /// False: this one was never used when all others were locked. It must not be read, since it may
  /// be in use by now.
  [[nodiscard]] bool has(std::size_t index) const noexcept {
    return static_cast<bool>(files_[index]);
  }

  ShardLocks(ShardLocks&&) noexcept = default;
  ShardLocks& operator=(ShardLocks&&) = delete;
  ~ShardLocks();

 private:
  ShardLocks() = default;

  ForkGate gate_;  // left last
  std::vector<FileDescriptor> files_;
};

/// Who holds it, for error texts: "process 4711", or "another process".
std::string describe_locker(const Directory& directory, ShardId id);

}  // namespace interlock::file
