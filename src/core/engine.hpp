// What a client is made of: the backend, the keeper, and who listens for wake-ups. Everything that
// is under way (a lease, a pending acquisition, a clean-up) shares the engine and so keeps it
// alive.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <unordered_map>

#include "core/courier.hpp"
#include "core/keeper.hpp"
#include "core/process.hpp"
#include "interlock/backend.hpp"
#include "interlock/client.hpp"
#include "interlock/observer.hpp"
#include "interlock/options.hpp"

namespace interlock::core {

class DeadlockWatch;
class Pursuit;

/// A claim that is ready to be made, once per lock object.
struct Template {
  std::string resource;  ///< the first name, as asked for
  std::vector<Part> parts;
  std::shared_ptr<const Who> who;
  Options options;
};

/// While it exists, this thread may be one of the store's own, which can't destroy the store.
class OnStoreThread {
 public:
  OnStoreThread() noexcept;
  OnStoreThread(const OnStoreThread&) = delete;
  OnStoreThread& operator=(const OnStoreThread&) = delete;
  ~OnStoreThread();
};

/// What a reply holds on to while the store has it. The store lets go of it on a thread of its own,
/// perhaps as the last one, and must not be destroyed right there.
template <class T>
class HeldByStore {
 public:
  explicit HeldByStore(std::shared_ptr<T> object) : object_(std::move(object)) {}
  HeldByStore(const HeldByStore&) = default;
  HeldByStore(HeldByStore&&) noexcept = default;
  HeldByStore& operator=(const HeldByStore&) = delete;
  ~HeldByStore() {
    const OnStoreThread here;
    object_.reset();
  }
  T* operator->() const noexcept { return object_.get(); }

 private:
  std::shared_ptr<T> object_;
};

/// Whoever has a claim in the store: an acquisition under way, a lease, or what is left of them.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The store hints that this owner should ask; nothing, if it is somebody else. Any thread.
  virtual void wake(const Owner& owner) = 0;
  /// The process ends: leave nothing behind, by the deadline.
  virtual void leave(TimePoint deadline) noexcept = 0;
};

class Engine final : public AtExit, public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> make(std::unique_ptr<Backend> backend, ClientOptions options);

  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  [[nodiscard]] const Traits& traits() const noexcept { return traits_; }
  [[nodiscard]] Keeper& keeper() noexcept { return keeper_; }
  [[nodiscard]] const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  [[nodiscard]] TimePoint now() const noexcept { return clock_->now(); }
  /// Of a call that begins now.
  [[nodiscard]] TimePoint call_deadline() const noexcept {
    return later(now(), traits_.call_timeout);
  }
  [[nodiscard]] const ClientOptions& options() const noexcept { return options_; }

  /// This is a forked child, and the engine its parent's: touch nothing.
  [[nodiscard]] bool forked() const noexcept { return epoch_ != fork_epoch(); }
  /// Throws Error (forked).
  void check_not_forked() const;

  /// Checks everything that can be checked before any I/O.
  [[nodiscard]] std::shared_ptr<const Template> prepare(std::vector<Part> parts,
                                                        Options options) const;

  Attempt acquire(const std::shared_ptr<const Template>& what, const Wait& wait);
  void acquire(const std::shared_ptr<const Template>& what, const Wait& wait, Callback then);
  Snapshot inspect(const Query& query);
  Lease adopt(std::string_view token, bool renew);
  bool evict(std::string_view resource, const Owner& owner);

  /// Makes one call and waits for its answer, lending the thread: an answer always, `unknown` if
  /// none came by the deadline.
  Answer acquire_and_wait(const Claim& claim, TimePoint deadline);
  Answer renew_and_wait(const Claim& claim, TimePoint deadline);
  Answer release_and_wait(const Claim& claim, TimePoint deadline);

  /// Releases these claims in the background, one after the other, and tries until all are
  /// confirmed or the TTL has ended. `done` hears what came of it, on any thread: granted, if one
  /// of them was held.
  void forget(std::vector<Claim> claims, std::function<void(const Answer&)> done = {});

  /// For waiters. True: it was woken already, before it listened.
  bool listen(const Owner& owner, std::weak_ptr<Listener> listener);
  void unlisten(const Owner& owner);

  /// For waiters that stand in the queue: it may turn out that this would never end.
  void watch_for_deadlocks(const std::weak_ptr<Pursuit>& waiter);

  /// Starts what a lease needs, and a callback with `calls_back`. Throws Error (unreachable) if no thread can be
  /// had: before the store is asked, so that nothing is granted that nobody could renew.
  void start_threads(const std::string& resource, bool calls_back);

  /// Runs a user's callback where it can't hold up the keeper.
  void deliver(std::function<void()> callback);
  /// Stops this source, and so runs users' callbacks, on a thread that does nothing else: they may
  /// lock, release, acquire, block, and end the process.
  void tell_lost(const std::stop_source& signal);
  /// Runs what may take long and must neither hold up the keeper nor wait for users' callbacks.
  void think(std::function<void()> thought) { thinker_.post(std::move(thought)); }

  /// Who asks if the calling thread waits for it: it may be what makes an actor, see deadlock.hpp.
  [[nodiscard]] std::shared_ptr<const Who> caller(const Template& what) const;

  void observe(Observation observation) const noexcept {
    if (!options_.observer) return;
    observation.store = &traits_;
    options_.observer->on(observation);
  }
  /// Every answer passes here: notices when the store goes down and comes back.
  void note(const Claim& claim, const Answer& answer) noexcept;
  void note(const Claim& claim, const Error* why) noexcept;

  void at_exit() noexcept override;

  ~Engine() override;

 private:
  Engine(std::unique_ptr<Backend> backend, ClientOptions options);
  static void dispose(Engine* engine) noexcept;
  void tell_opened() const;
  Attempt conclude(const std::shared_ptr<const Template>& what, Pursuit& pursuit);
  void wake(const Owner& owner);
  template <class Send>
  Answer call(const Claim& claim, TimePoint deadline, const Send& send);
  std::vector<std::shared_ptr<Listener>> listeners();

  const std::uint64_t epoch_;
  ClientOptions options_;
  std::shared_ptr<Clock> clock_;
  std::string host_;
  std::mutex mutex_;
  std::unordered_map<Owner, std::weak_ptr<Listener>> waiters_;
  // Who was woken and is no waiter: not yet, perhaps. A few are enough, since a wake-up that is
  // missed costs one heartbeat.
  std::array<Owner, 64> early_wakes_{};
  std::size_t next_early_wake_ = 0;
  std::atomic<bool> down_{false};
  std::shared_ptr<DeadlockWatch> deadlocks_;
  Keeper keeper_;
  Courier courier_{1};
  Courier thinker_{1};
  Courier losses_;
  std::unique_ptr<Backend> backend_;
  Traits traits_;
};

}  // namespace interlock::core
