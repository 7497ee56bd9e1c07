// A simulated process with one client of the Redlock: RedlockCalls, which is the library's own, over simulated
// connections. It can be stopped and go on, and it can crash.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "interlock/traits.hpp"
#include "network.hpp"

namespace simulation {

using interlock::Answer;
using interlock::Owner;
using interlock::redis::ClaimPtr;

class Client final : public Wire::Owner {
 public:
  using Reply = std::function<void(const Answer&)>;
  using Woken = std::function<void()>;

  Client(World& world, std::size_t number, OwnClock clock,
         std::vector<std::unique_ptr<Host>>& hosts, const Path::Weather& weather,
         const interlock::Traits& traits, std::uint64_t seed);

  [[nodiscard]] World& world() const { return world_; }
  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] const interlock::Traits& traits() const { return traits_; }
  [[nodiscard]] TimePoint now() const override { return TimePoint(clock_.at(world_.now())); }
  [[nodiscard]] Time when(TimePoint shows) const { return clock_.when(shows.time_since_epoch()); }
  [[nodiscard]] TimePoint call_deadline() const { return now() + traits_.call_timeout; }
  /// Runs it when this client's clock shows so much, or when it goes on.
  void at(TimePoint when, std::function<void()> what) override;
  interlock::Owner new_owner() { return {.high = random_.next(), .low = random_.next()}; }

  // The store, see Backend.
  void acquire(const ClaimPtr& claim, bool queue, TimePoint deadline, Reply reply);
  void renew(const ClaimPtr& claim, TimePoint deadline, Reply reply);
  void release(const ClaimPtr& claim, TimePoint deadline, Reply reply);

  // The engine.
  /// True: it was woken already.
  bool listen(const interlock::Owner& owner, Woken woken);
  void unlisten(const interlock::Owner& owner) { listeners_.erase(owner); }
  /// Releases it in the background, until that is confirmed or its time must be over.
  void forget(const ClaimPtr& claim);

  // What goes wrong.
  void stop() { stopped_ = true; }
  void go_on();
  void crash();
  [[nodiscard]] bool crashed() const { return crashed_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] Wire& wire(std::size_t node) { return *wires_[node]; }
  [[nodiscard]] std::size_t open_calls() const { return calls_.open(); }

  // Wire::Owner
  void heard(std::uint64_t letter, std::size_t node, Vote vote) override;
  [[nodiscard]] bool may_send(std::uint64_t letter) const override {
    return calls_.may_send(letter);
  }
  void hears(std::size_t node) override;
  void turn(const interlock::Owner& owner, std::size_t node) override;
  void run(std::function<void()> what) override;

 private:
  using Actions = RedlockCalls::Actions;

  template <class Tell>
  void tell(Tell tell);
  void tick();
  void check_heals(const Actions& actions);
  [[nodiscard]] RedlockCalls::Now times() const;
  void listen_all(const Actions::Listen& listen);
  void wake(const interlock::Owner& owner);
  void forget(const ClaimPtr& claim, TimePoint until, int tries);

  World& world_;
  std::size_t number_;
  OwnClock clock_;
  const interlock::Traits& traits_;
  Random random_;
  RedlockCalls calls_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::unordered_map<RedlockCalls::Id, Reply> replies_;
  std::unordered_map<interlock::Owner, Woken> listeners_;
  std::unordered_map<RedlockCalls::Id, interlock::Owner> renewals_;  // under way
  std::unordered_set<interlock::Owner> confirmed_;                   // by a renewal, ever
  std::array<interlock::Owner, 16> early_wakes_{};
  std::size_t next_early_wake_ = 0;
  std::vector<Actions::Listen> listening_;
  TimePoint ticks_at_ = TimePoint::max();
  bool stopped_ = false, crashed_ = false;
  std::vector<std::function<void()>> backlog_;
};

}  // namespace simulation
