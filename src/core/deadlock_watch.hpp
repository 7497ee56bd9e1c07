// Looks for deadlocks among a client's own waiters. See interlock/deadlock.hpp.
//
// A waiter that has an actor is looked after half a second after it queued, and then ever less often. A
// look begins with the rows it waits in: only if somebody in there has an actor, too, the whole store is
// read. A circle in which the youngest is ours has to be there at a second look, half a second later.
// Whoever closes a circle is the youngest in it, and so it is found about a second after it was closed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "interlock/backend.hpp"
#include "interlock/deadlock.hpp"

namespace interlock::core {

class Engine;
class Pursuit;

/// Works on the keeper's thread; the store's answers come from any.
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
    std::optional<Deadlock> suspected;
  };

  void look(Engine& engine, const Query& query, bool whole);
  void seen(Engine& engine, const Snapshot& snapshot, bool whole);
  void judge(TimePoint now, const Snapshot& snapshot);
  void go_on(Engine& engine, TimePoint now);

  std::weak_ptr<Engine> engine_;
  std::mutex mutex_;
  std::map<Owner, Waiter> waiters_;
  TimePoint next_ = TimePoint::max();  // of all waiters
  bool looking_ = false;
  std::optional<std::pair<Snapshot, bool>> answer_;  // and whether it is the whole store
};

}  // namespace interlock::core
