// What a Lease points to: drives one LeaseMachine and one Succession, and does what users ask of a
// lease.
#pragma once

#include <optional>
#include <stop_token>

#include "core/engine.hpp"
#include "core/lease_machine.hpp"
#include "core/succession.hpp"

namespace interlock::core {

/// What an acquisition brought.
struct Grant {
  Claim claim;
  std::vector<Fence> fences;
  TimePoint sent;
  TimePoint at;
  Duration waited{};
  int attempts = 0;
};

class Hold final : public Listener, public Keeper::Task, public std::enable_shared_from_this<Hold> {
 public:
  Hold(std::shared_ptr<Engine> engine, std::shared_ptr<const Template> what, Grant grant);
  /// Listens and is renewed from now on.
  void begin();

  // See Lease.
  [[nodiscard]] const std::string& resource() const noexcept { return what_->resource; }
  [[nodiscard]] std::vector<std::string> resources() const;
  [[nodiscard]] Claim claim() const;
  [[nodiscard]] Fence fence(std::string_view resource) const;
  [[nodiscard]] Mode mode(std::string_view resource) const;
  [[nodiscard]] const Traits& traits() const noexcept { return engine_->traits(); }
  [[nodiscard]] std::chrono::system_clock::time_point acquired_at() const noexcept;
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  [[nodiscard]] Duration waited() const noexcept { return waited_; }
  [[nodiscard]] TimePoint valid_until() const;
  [[nodiscard]] Duration time_remaining() const;
  [[nodiscard]] LeaseState state() const noexcept;
  [[nodiscard]] std::stop_token lost();
  [[nodiscard]] std::string lost_reason() const;
  bool extend(Duration ttl);
  LeaseState release() { return release(engine_->traits().call_timeout, true); }
  LeaseState release(const std::vector<std::string>& resources);
  void async_release(std::function<void(LeaseState)> then);
  bool change(Mode from, Mode to, const Wait& wait);
  bool tie_to(std::optional<std::int64_t> process);
  [[nodiscard]] std::string token();
  std::string detach();
  /// What a destructor does.
  void drop() noexcept { drop(engine_->options().release_timeout); }

  void wake(const Owner& owner) override;
  void leave(TimePoint deadline) noexcept override;
  void due(TimePoint now) override;

 private:
  /// `again`: asks until the timeout, while the store is out of reach.
  LeaseState release(Duration timeout, bool again);
  /// Ends renewal. A state: it was over already. `prepare`: called first, with the mutex; if it throws, nothing has begun.
  std::optional<LeaseState> begin_release(TimePoint now, const std::function<void()>& prepare = {});
  LeaseState end_release(TimePoint began, const Answer& answer);
  Answer give_back(TimePoint deadline);
  /// All that the store may have of this hold.
  [[nodiscard]] std::vector<Claim> claims_in_store() const;
  void forget();
  void drop(Duration timeout) noexcept;
  void observe(Event event, const Claim& claim, Duration elapsed, const Error* error = nullptr);
  void tell_renewed(const Claim& claim, TimePoint now, const Answer& answer);
  void perform(const LeaseMachine::Step& step, std::unique_lock<std::mutex>& lock);
  void end_lost(const LeaseMachine::Step& step, std::unique_lock<std::mutex>& lock);
  void tell_lost(std::unique_lock<std::mutex>& lock);
  void send_renewal(TimePoint deadline, std::unique_lock<std::mutex>& lock);
  bool renew_now(TimePoint sent, std::unique_lock<std::mutex>& lock);
  void send_question(TimePoint deadline, std::unique_lock<std::mutex>& lock);
  /// Leaves the lock unlocked. `ask_on`: at once, if that leaves another question.
  void take_answer(const Claim& asked, TimePoint sent, const Answer& answer, bool ask_on,
                   std::unique_lock<std::mutex>& lock);
  /// Asks until it is known what the store has. Throws Error (unreachable) if that stays unknown.
  void settle();
  void doubt_change();
  [[nodiscard]] Error lost_error() const;
  /// With the mutex. Throws Error (invalid) if there is none.
  [[nodiscard]] const Part& part(std::string_view resource) const;

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<const Template> what_;
  const TimePoint acquired_;
  const Duration waited_;
  const int attempts_;

  mutable std::mutex mutex_;  // guards what follows; never held during a call to the store
  Succession held_;
  std::vector<Fence> fences_;
  LeaseMachine machine_;
  std::uint64_t generation_ = 0;  // a renewal of an earlier claim says nothing about this one
  std::uint64_t renewals_sent_ = 0;
  std::uint64_t renewals_answered_ = 0;      // up to this one
  bool released_ = false;                    // what is held does not change any more
  std::stop_source lost_{std::nostopstate};  // made when somebody asks for it
};

}  // namespace interlock::core
