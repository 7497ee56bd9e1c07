// A shard: the records of all resources whose names hash to it, and how they are written down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_table.hpp"

namespace interlock::file {

using ShardId = std::uint16_t;

/// Few records each, so that a call costs the same whether there are ten records or ten thousand.
inline constexpr unsigned kShards = 4096;

/// The most that one file holds. A damaged one is not to fill the memory of whoever reads it.
inline constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
inline constexpr std::size_t kMostRecords = 16384;

/// The lowest 12 bits of the name's FNV-1a hash (64 bits). Part of the format.
ShardId shard_of(std::string_view resource) noexcept;
/// Sorted, each once: the order in which they are locked.
std::vector<ShardId> shards_of(const Claim& claim);

/// Three hexadecimal digits: "0a3".
std::string shard_name(ShardId id);
inline std::string lock_name(ShardId id) { return shard_name(id) + ".lock"; }
inline std::string data_name(ShardId id) { return shard_name(id) + ".json"; }
inline std::string spare_name(ShardId id) { return shard_name(id) + ".next"; }

/// What a shard knows besides its records.
struct ShardState {
  std::uint64_t fence = 0;   ///< the last one given
  std::uint64_t ticket = 0;  ///< the last one that queued here
};

/// The next fence after `last`: the wall clock in microseconds, or one more. So a shard that was
/// deleted, or repaired, does not begin again with small numbers. Below 2^53.
std::uint64_t next_fence(std::uint64_t last) noexcept;

/// What reading goes by.
struct ReadContext {
  const std::string& boot;  ///< records of another boot are void
  TimePoint now;
  std::function<bool(const Record&)> skip{};  ///< leave these out
};

/// Of the files. It moves with every change of what they hold.
inline constexpr std::uint64_t kFormat = 1;

/// Puts the records into the table. Nothing at all is an empty shard. Throws Error with the reason (corrupt; refused:
/// it is of another format); the table is then not to be used.
ShardState read_shard(std::string_view text, ShardId id, const ReadContext& context,
                      LockTable& table);

/// The rows of the table that belong to this shard, as text. The same rows give the same text. Throws Error (refused) if
/// there are more than kMostRecords records.
std::string write_shard(const LockTable& table, ShardId id, ShardState state,
                        const std::string& boot);

}  // namespace interlock::file
