// The reading half of a file store.
#include <algorithm>
#include <functional>

#include "backends/file/obituaries.hpp"
#include "backends/file/shard_file.hpp"
#include "backends/file/shard_lock.hpp"
#include "backends/file/store.hpp"

namespace interlock::file {

namespace {

// Read under their locks together, so that a claim on several resources is seen whole or not at
// all; not all shards there may be, since every lock is an open file.
constexpr std::size_t kTogether = 64;

std::vector<ShardId> shards_of(const Query& query, const Directory& directory) {
  std::vector<ShardId> ids;
  for (const auto& resource : query.resources) ids.push_back(shard_of(resource));
  if (query.resources.empty()) ids = existing_shards(directory);
  std::sort(ids.begin(), ids.end(), std::greater<>());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

bool Store::attempt(Inspection& inspection, ShardId& blocker) {
  try {
    auto& left = inspection.shards;
    if (!inspection.begun) left = shards_of(inspection.query, directory_);
    inspection.begun = true;
    while (!left.empty()) {
      const std::vector<ShardId> batch(
          left.rbegin(),
          left.rbegin() + static_cast<std::ptrdiff_t>(std::min(left.size(), kTogether)));
      std::vector<ShardFile> files;
      {
        const auto locks = ShardLocks::try_take(directory_, batch, Access::read, blocker);
        if (!locks) return false;
        // What came into use after the listing may belong to a claim on these, too.
        if (!inspection.read_some && left.size() == batch.size()) {
          auto now_there = shards_of(inspection.query, directory_);
          if (now_there != left) {
            left = std::move(now_there);
            continue;
          }
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
          if (locks->has(i)) inspection.limit.add(files.emplace_back(directory_, batch[i]));
        }
      }
      const auto now = BootClock::now();
      LockTable table({.next_fence = {}});
      for (const auto& file : files) {
        try {
          read_shard(file.content(), file.id(),
                     {.boot = boot_, .now = now, .skip = Obituaries(self_, realm_)}, table);
        } catch (const Error& error) {
          throw file.unreadable(error);
        }
      }
      auto states = table.inspect(inspection.query, now);
      std::move(states.begin(), states.end(), std::back_inserter(inspection.snapshot.resources));
      left.resize(left.size() - batch.size());
      inspection.read_some = true;
    }
  } catch (const Error& error) {
    inspection.snapshot = {.resources = {}, .why = error};
  } catch (const std::exception& error) {
    inspection.snapshot = {.resources = {}, .why = Error(Errc::unreachable, error.what())};
  }
  auto& resources = inspection.snapshot.resources;
  std::sort(resources.begin(), resources.end(),
            [](const ResourceState& a, const ResourceState& b) { return a.resource < b.resource; });
  return true;
}

}  // namespace interlock::file
