// A granted claim.
#pragma once

#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/options.hpp"

namespace interlock {

class Attempt;
struct Traits;
namespace core {
class Engine;
class Hold;
}  // namespace core

enum class LeaseState {
  held,      ///< ours, by the store's last word and by the clock
  lost,      ///< was ours; the store said so, or it could not be renewed in time
  released,  ///< given back, and the store confirmed it; or handed on by detach()
};

std::string_view to_string(LeaseState state) noexcept;

/// Holds what was claimed until it is released or destroyed. Renews itself in the background.
///
/// Move-only: it belongs to whoever has the object, not to a thread. One thread at a time may use
/// one Lease object, but state(), lost() and time_remaining() may be read from any thread.
///
/// **Check it.** A lease can be lost: the store may be out of reach until the TTL has ended, the
/// process may be stopped, an operator may break the lock. `lost()` tells in time, counted on this
/// machine's own clock and with no network needed. Work that must never overlap hands `fence()` to
/// whatever it writes to.
///
/// The destructor releases, never throws, and waits at most ClientOptions::release_timeout.
class [[nodiscard]] Lease {
 public:
  /// Holds nothing: released().
  Lease() noexcept;
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  /// The name (the first one, of several) as it was asked for.
  [[nodiscard]] const std::string& resource() const;
  /// All names asked for, sorted; without ancestors.
  [[nodiscard]] std::vector<std::string> resources() const;
  /// A new one after each change of its modes.
  [[nodiscard]] Owner owner() const;
  /// The fence of resource(). Throws Error (unsupported) where the store has none.
  [[nodiscard]] Fence fence() const;
  /// The fence of one of several resources.
  [[nodiscard]] Fence fence(std::string_view resource) const;
  /// How it holds resource(): alone, shared with others, or slots of it.
  [[nodiscard]] Mode mode() const;
  /// How it holds one of several resources. Throws Error (invalid) if it does not.
  [[nodiscard]] Mode mode(std::string_view resource) const;
  [[nodiscard]] Who who() const;
  /// Of the store that it is from.
  [[nodiscard]] const Traits& traits() const;
  /// For people; nothing is decided by it.
  [[nodiscard]] std::chrono::system_clock::time_point acquired_at() const;
  /// Until then it is ours whatever happens to the network; a renewal moves it.
  [[nodiscard]] TimePoint valid_until() const;
  /// Until valid_until(); never negative.
  [[nodiscard]] Duration time_remaining() const;
  [[nodiscard]] Duration ttl() const;
  [[nodiscard]] LeaseState state() const noexcept;
  /// state() == held.
  explicit operator bool() const noexcept { return state() == LeaseState::held; }
  /// How often the store was asked until it was granted, and how long that took.
  [[nodiscard]] int attempts() const;
  [[nodiscard]] Duration waited() const;

  /// Stopped when the lease is lost: when the store says so, and at the latest when the local
  /// validity ends. A release never stops it. Callbacks on it run on a thread of the client's that
  /// does nothing else: they may lock, release, acquire, block, and end the process. Sixteen of a
  /// client's that block at one time hold up the next. (One that is made when the lease is lost
  /// already runs at once, where it is made.)
  [[nodiscard]] std::stop_token lost() const;
  /// Why it was lost, for people; empty while it isn't.
  [[nodiscard]] std::string lost_reason() const;

  /// Renews now, with this TTL from now on. A shorter one takes nothing away that was already
  /// given: it shows after the next renewals. False: it is lost. Throws Error
  /// (unreachable) if the store does not answer; the lease then lives on until valid_until().
  bool extend(Duration ttl);

  /// Gives it back and waits for the store to confirm: `released`, or `lost` if it was not ours any
  /// more. A store that is out of reach is asked again for some seconds. Throws Error (unreachable)
  /// if it stays so; the release is then tried in the background, and the TTL ends it anyway.
  /// Releasing twice is fine.
  LeaseState release();
  /// The same without blocking: `then` is called on the client's callback thread (see
  /// ClientOptions::executor). A store that does not answer is asked again in the background until
  /// the TTL has ended; then the state is `lost`.
  void async_release(std::function<void(LeaseState)> then);
  /// The same for coroutines: `co_await lease.async_release();`
  [[nodiscard]] auto async_release();
  /// Gives back some of several resources and keeps the rest. Names that are not held here are
  /// passed over.
  LeaseState release(const std::vector<std::string>& resources);

  /// Every exclusive resource becomes shared, without a gap in which another writer could get in.
  /// False: the lease is lost. Throws Error (unreachable) if the store does not answer: the lease is
  /// then held as before or changed, mode() says what is certain, and it is settled in the
  /// background. The same for the two below.
  bool downgrade();
  /// Shared resources become exclusive if no other reader is in the way. Two readers that try don't
  /// wait for each other: the second one is refused, and keeps its shared lease. Owner and fence
  /// are new ones. One-shot; the other form waits for the other readers to leave, and holds back
  /// new ones. False also if the lease is lost: ask state().
  bool try_upgrade();
  bool try_upgrade_for(Duration limit);

  /// Changes which process ends the lease with its own end, where the store can notice that (see
  /// Options::process). Empty: none does any more, though it is still shown as the holder. False:
  /// the lease is lost. Throws Error (unreachable).
  bool tie_to(std::optional<std::int64_t> process);

  /// What detach() would give, without letting go: with it, another process can release the lease
  /// (not if Traits::detaches is false).
  [[nodiscard]] std::string token() const;

  /// Turns it into a printable token, which holds the claim until its TTL ends, with no process
  /// that renews it. Client::adopt turns it back, in any process. This object is released(). Throws
  /// Error (unsupported), and holds on, if a lease of this store ends with its client
  /// (Traits::detaches is false: PostgreSQL's advisory locks).
  [[nodiscard]] std::string detach();

 private:
  friend class Attempt;
  friend class core::Engine;
  explicit Lease(std::shared_ptr<core::Hold> hold) noexcept;
  void drop() noexcept;
  [[nodiscard]] core::Hold& hold() const;

  std::shared_ptr<core::Hold> hold_;
};

namespace detail {

/// What `co_await lease.async_release()` waits on.
class Releasing {
 public:
  explicit Releasing(Lease& lease) : lease_(lease) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    lease_.async_release([this, caller](LeaseState state) {
      state_ = state;
      caller.resume();
    });
  }
  // Most callers don't look at the state, so it may be discarded.
  LeaseState await_resume() const noexcept { return state_; }  // NOLINT(modernize-use-nodiscard)

 private:
  Lease& lease_;
  LeaseState state_ = LeaseState::released;
};

}  // namespace detail

inline auto Lease::async_release() { return detail::Releasing(*this); }

}  // namespace interlock
