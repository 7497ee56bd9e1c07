#include "backends/file/shard.hpp"

#include <algorithm>
#include <chrono>

namespace interlock::file {

ShardId shard_of(std::string_view resource) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : resource) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return static_cast<ShardId>(hash % kShards);
}

std::vector<ShardId> shards_of(const Claim& claim) {
  std::vector<ShardId> ids;
  ids.reserve(claim.parts.size());
  for (const auto& part : claim.parts) ids.push_back(shard_of(part.resource));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string shard_name(ShardId id) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[(id >> 8U) & 15U], digits[(id >> 4U) & 15U], digits[id & 15U]};
}

std::uint64_t next_fence(std::uint64_t last) noexcept {
  using namespace std::chrono;
  constexpr std::uint64_t absurd = std::uint64_t{1} << 52U;  // the year 2112
  const auto wall =
      duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto clock = wall > 0 ? static_cast<std::uint64_t>(wall) : 0;
  return std::max(last + 1, clock < absurd ? clock : 0);
}

}  // namespace interlock::file
