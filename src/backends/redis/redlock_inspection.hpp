// Who holds and who waits, by what a majority of a Redlock's nodes says.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/redis/redlock_group.hpp"
#include "core/keeper.hpp"

namespace interlock::redis {

class RedlockInspection final : public core::Keeper::Task,
                                public std::enable_shared_from_this<RedlockInspection> {
 public:
  /// Waits for a majority, and a little longer for the others.
  static void start(RedlockGroup& group, const Query& query, Call call, Report report);

  RedlockInspection(RedlockGroup& group, TimePoint deadline, Report report);
  void due(TimePoint now) override;

 private:
  void told(std::size_t node, Snapshot snapshot);
  void finish(std::unique_lock<std::mutex>& lock);

  RedlockGroup& group_;
  const TimePoint started_;
  const TimePoint deadline_;
  const Report report_;
  std::mutex mutex_;
  std::vector<std::optional<Snapshot>> snapshots_;
  std::size_t left_;
  std::size_t good_ = 0;
  bool over_ = false;
};

/// What at least `majority` of them show.
std::vector<ResourceState> merge(const std::vector<const Snapshot*>& snapshots,
                                 std::size_t majority);

}  // namespace interlock::redis
