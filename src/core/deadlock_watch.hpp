// Looks for deadlocks among a client's own waiters. See interlock/deadlock.hpp.
//
// A waiter that has an actor is looked after half a second after it queued, and then ever less often. A
// look begins with the rows it waits in: only if somebody in there has an actor, too, the whole store is
// read. A circle that one of ours is in has to be there at a second look, half a second later. Whoever
// closes a circle is the youngest in it, and so it is found about a second after it was closed. The
// others leave it to the youngest for a while, which may be of a client that does not look.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "interlock/backend.hpp"
#include "interlock/deadlock.hpp"

namespace interlock::core {

class Engine;
class Pursuit;

/// Works on the engine's thread for thinking, a small part of the time: renewals never wait for it.
class DeadlockWatch final : public Keeper::Task,
                            public std::enable_shared_from_this<DeadlockWatch> {
 public:
  explicit DeadlockWatch(std::weak_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void add(const std::shared_ptr<Pursuit>& waiter);
  void due(TimePoint now) override;

 private:
  struct Waiter {
    std::weak_ptr<Pursuit> pursuit;
    std::vector<std::string> resources;  // the pursuit's own claim is its driver's
    TimePoint next_look;
    Duration pause;
  };
  struct Suspicion {
    Deadlock circle;
    TimePoint since;  // when it had been seen for the first time
  };
  struct Look {
    std::uint64_t number = 0;
    TimePoint began;
    bool whole = false;  // else only the rows in which somebody is due
  };
  using Ended = std::pair<std::shared_ptr<Pursuit>, Error>;

  void go_on(Engine& engine);
  void look(Engine& engine, const Query& query, bool whole);
  void seen(Engine& engine, const Look& look, const Snapshot& snapshot);
  void judge(const Look& look, TimePoint now, std::vector<Deadlock> circles);
  bool suspect(const Look& look, Suspicion& suspicion, std::vector<Ended>& ended);
  /// Calls it later, if both are there still.
  template <class Step>
  void think(Engine& engine, Step step);

  std::weak_ptr<Engine> engine_;
  std::mutex mutex_;
  std::map<Owner, Waiter> waiters_;
  std::map<Owner, Suspicion> suspicions_;  // by the smallest owner of a claim that waits
  TimePoint next_ = TimePoint::max();      // look, of all waiters
  std::uint64_t looks_ = 0;
  TimePoint looking_until_{};  // at the latest; no look is under way from then on
};

}  // namespace interlock::core
