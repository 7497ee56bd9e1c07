// Advisory mode: all locks of a client sit on one session, and end with it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/postgres/link.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/settings.hpp"

namespace interlock::postgres {

class SessionStore final : public Backend {
 public:
  explicit SessionStore(Settings settings);
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;
  ~SessionStore() override;

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override;
  void on_wake(WakeSink sink) override { wake_ = std::move(sink); }
  void on_warning(const WarnSink& sink) override { warn_ = sink; }
  void lend(Signal& signal, TimePoint until) override { loop_.lend(signal, until); }

 private:
  /// What the session has, or may have, for an owner.
  struct Hold {
    std::string ids;
    std::string name;   ///< of its first resource
    TimePoint ends{};   ///< by our clock: not later than by the server's
    bool sure = false;  ///< the server said so
    bool lost = false;  ///< it went with its session
  };
  /// Looks after holds whose time is over: only this session can free them.
  class Timer;

  void ask(const Statement& statement, std::vector<std::string> parameters, Call call, Done done);
  /// Before a claim is sent: from now on it may be ours.
  void expect(const Claim& claim);
  /// What came of it.
  void settle(const Claim& claim, TimePoint sent, const Answer& answer);
  void set_end(const Owner& owner, Hold& hold, TimePoint ends);
  void forget(const Owner& owner);
  [[nodiscard]] bool lost(const Owner& owner);
  void session_ended(const Error& why);
  void expire(const Owner& owner, const std::string& ids);
  /// A call failed half-way: gives back what it may have locked.
  void clean_up();
  /// What pg_stat_activity shows of us, and that it is not this any more.
  [[nodiscard]] std::string title() const;
  void title_changes();

  const Settings settings_;
  Traits traits_;
  WakeSink wake_;
  WarnSink warn_;
  io::Loop loop_;
  std::shared_ptr<Link> session_;
  std::shared_ptr<Timer> timer_;
  std::mutex mutex_;
  // Guarded by the mutex:
  std::unordered_map<Owner, Hold> holds_;
  std::multimap<TimePoint, Owner> ends_;
  std::string shown_ = kTitle;  ///< the title
  TimePoint show_at_ = TimePoint::max();
  std::optional<Error> why_ended_;  ///< the last session
};

}  // namespace interlock::postgres
