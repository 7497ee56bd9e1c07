// The Redlock as a store: every call goes to all nodes, and a majority of them decides.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/redlock_inspection.hpp"
#include "backends/redis/redlock_mender.hpp"
#include "backends/redis/redlock_waiters.hpp"

namespace interlock::redis {

inline constexpr const char* kNoSlots =
    "a Redlock has no semaphores: with three nodes, three holders of two slots are possible, since "
    "each pair of them may meet on another node; use redis:// on one server, or a lock per slot";

class Redlock final : public Backend {
 public:
  Redlock(const std::string& prefix, const std::vector<RedlockGroup::Member>& members,
          Traits traits)
      : traits_(std::move(traits)),
        waiters_(members.size() / 2 + 1),
        mender_(group_),
        group_(
            prefix, members,
            [this](std::size_t node, const Owner& owner) {
              if (waiters_.turn(owner, node)) sink_(owner);
            },
            [this](const Error& warning) { warn_(warning); }) {
    for (const auto& member : members) node_names_.push_back(member.name);
  }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override {
    call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout / 2);
    RedlockInspection::start(group_, query, call, std::move(report));
  }
  void on_wake(WakeSink sink) override { sink_ = std::move(sink); }
  void on_warning(const WarnSink& sink) override { warn_ = sink; }
  void lend(Signal& signal, TimePoint until) override { group_.loop().lend(signal, until); }

 private:
  static constexpr Duration kShortestPatience = std::chrono::milliseconds(20);

  class Acquiring;
  class Renewing;
  class Releasing;

  /// How long a node may take: a fraction of the TTL, so that one that hangs does not cost the
  /// lease.
  [[nodiscard]] Call bounded(Call call, const Claim& claim) const {
    const auto patience =
        std::min(std::max(claim.ttl / 4, kShortestPatience), traits_.call_timeout);
    call.deadline = std::min(call.deadline, BootClock::now() + patience);
    return call;
  }
  [[nodiscard]] std::optional<Error> refusal(const Claim& claim) const;
  [[nodiscard]] std::optional<Error> bad_name(const Claim& claim) const;

  Traits traits_;
  std::vector<std::string> node_names_;
  Waiters waiters_;
  Gates gates_;
  std::atomic<std::uint64_t> attempts_ = 0;
  WakeSink sink_ = [](const Owner&) {};
  WarnSink warn_ = [](const Error&) {};
  RedlockMender mender_;
  RedlockGroup group_;  ///< the first to end: it reports to all of the above
};

}  // namespace interlock::redis
