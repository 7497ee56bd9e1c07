// The Redlock as a store: drives RedlockCalls over real servers.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/redis/redlock_calls.hpp"
#include "backends/redis/redlock_inspection.hpp"

namespace interlock::redis {

inline constexpr const char* kNoSlots =
    "a Redlock has no semaphores: with three nodes, three holders of two slots are possible, since "
    "each pair of them may meet on another node; use redis:// on one server, or a lock per slot";

class Redlock final : public Backend {
 public:
  Redlock(const std::string& prefix, const std::vector<RedlockGroup::Member>& members,
          Traits traits);

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
  using Actions = RedlockCalls::Actions;
  class Timer;

  [[nodiscard]] std::optional<Error> refusal(const Claim& claim) const;
  [[nodiscard]] std::optional<Error> bad_name(const Claim& claim) const;

  /// Tells the machine something, and does what it wants done.
  template <class Tell>
  void tell(Tell tell);
  template <class Begin>
  void begin(Reply reply, Begin begin);
  void send(Actions::Send send);
  void listen(const Actions::Listen& listen);

  Traits traits_;
  WakeSink sink_ = [](const Owner&) {};
  WarnSink warn_ = [](const Error&) {};
  std::mutex mutex_;
  // Guarded by the mutex, under which everything is sent: what the machine decides first goes first.
  RedlockCalls calls_;
  std::unordered_map<RedlockCalls::Id, Reply> replies_;
  TimePoint ticks_at_ = TimePoint::max();
  std::shared_ptr<Timer> timer_;
  RedlockGroup group_;  ///< the first to end: it reports to all of the above
};

}  // namespace interlock::redis
