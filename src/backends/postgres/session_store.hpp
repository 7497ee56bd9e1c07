// Advisory mode: the locks of a client sit on one session, and end with it. Where locks change hands often,
// there is a second one: one of those who wait blocks there until it is its turn, and holds there.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/postgres/claims.hpp"
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
  /// What is locked on a session ends with it.
  struct Session {
    std::shared_ptr<Link> link{};
    std::int64_t home = 0;
    std::int64_t last_open = 0;  ///< the home of the last one that was greeted
    std::size_t holds = 0;       ///< of those below
    std::string shown = kTitle;  ///< the title
    /// A statement failed half-way, and may have left a lock that no row tells of.
    TimePoint clean_up_at = TimePoint::max();
  };
  /// What a session has, or may have, for an owner.
  struct Hold {
    Session* session = nullptr;
    std::string ids;
    std::vector<std::string> resources;  ///< those not given back yet
    TimePoint ends{};                    ///< by our clock: not later than by the server's
    bool sure = false;                   ///< the server said so
    bool lost = false;                   ///< it went with its session
    /// Granted when it had waited, and nobody has asked since.
    std::optional<Answer> news{};
    TimePoint since{};  ///< the news
  };
  /// Who has the second session now, to ask or to wait there.
  struct Turn {
    Owner owner;
    std::string name;                ///< what for
    bool answered = false;           ///< it has a place in the queue, or what it wanted
    std::optional<Answer> queued{};  ///< what it was told
    /// Asked for the same since then, and have to come behind it.
    std::vector<std::function<void()>> behind{};
  };
  /// Looks after holds whose time is over: only this session can free them.
  class Timer;

  [[nodiscard]] std::shared_ptr<Link> make_link(Session& session);
  void ask(const Session& session, const Statement& statement, std::vector<std::string> parameters,
           Call call, Done done);
  struct Place {
    Session& session;
    bool waits;  ///< there, from now on
  };
  /// Before a claim is sent: from now on it may be ours.
  Place expect(const Claim& claim, bool queue);
  /// What came of it.
  void settle(const Claim& claim, Session& session, TimePoint sent, const Answer& answer);
  Hold& hold_of(const Claim& claim, Session& session);
  void set_end(const Owner& owner, Hold& hold, TimePoint ends);
  void forget(const Owner& owner);
  /// What the claim has of its hold.
  void forget_parts(const Claim& claim);
  [[nodiscard]] bool lost(const Owner& owner);
  [[nodiscard]] Session& session_of(const Owner& owner);
  void session_ended(Session& session, const Error& why);

  // The second session:
  [[nodiscard]] bool may_wait_there(const Claim& claim, bool queue);
  void handed_over();
  void close_second();
  void wait_there(const Claim& claim, Parameters parameters);
  void waited(const Claim& claim, TimePoint sent, const Outcome& outcome);
  [[nodiscard]] std::optional<Answer> known(const Owner& owner);
  [[nodiscard]] bool waits_there(const Owner& owner);
  [[nodiscard]] bool comes_behind(const Claim& claim) const;
  void go_on_behind();
  void leave_the_line(const Claim& claim, Call call, Reply reply);

  void expire(const Owner& owner, const std::string& ids);
  /// Gives back what a statement that failed half-way may have locked.
  void clean_up(const Session& session);
  /// What pg_stat_activity shows of us, and that it is not this any more.
  [[nodiscard]] std::string title(const Session& session) const;
  void title_changes();

  const Settings settings_;
  Traits traits_;
  WakeSink wake_;
  WarnSink warn_;
  io::Loop loop_;
  Session main_;
  Session second_;
  std::shared_ptr<Timer> timer_;
  std::mutex mutex_;
  // Guarded by the mutex:
  std::unordered_map<Owner, Hold> holds_;
  std::multimap<TimePoint, Owner> ends_;
  TimePoint show_at_ = TimePoint::max();
  std::optional<Error> why_ended_;  ///< the last session
  enum class Second : std::uint8_t { down, opening, open } second_is_ = Second::down;
  TimePoint open_at_{};     ///< not before
  TimePoint used_{};        ///< last
  std::size_t asking_ = 0;  ///< under way on the main session: acquires
  std::optional<Turn> turn_;
  Owner rested_{};  ///< had its turn, and waits like the others now
  std::deque<TimePoint> handovers_;
};

}  // namespace interlock::postgres
