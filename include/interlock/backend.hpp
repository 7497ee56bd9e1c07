// The seam between everything that thinks and everything that stores.
//
// A backend translates a claim into one atomic step of its store and says what came of it. It never
// waits for a lock, never retries, never renews, and keeps no opinion: the core does all of that,
// once, for every store. To add a store, read CONTRIBUTING.md ("Add a store in six steps") and
// src/backends/memory/, the shortest one; tests/conformance/ then says whether it is right.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/clock.hpp"
#include "interlock/error.hpp"
#include "interlock/inspect.hpp"
#include "interlock/traits.hpp"

namespace interlock {

/// What came of a call.
enum class Verdict {
  granted,  ///< acquire, renew: it is ours. release: all of it was held, and is free now
  queued,   ///< acquire: it is in the queue. release: it was in the queue, and is out now
  busy,     ///< acquire that may not queue, or on a store without a queue: taken
  lost,  ///< renew, release: the store knows nothing of this owner. acquire: it knows a part of it
  unknown,  ///< no telling: `why` says what happened. Retryable or not, see Error
};

struct Answer {
  Verdict verdict = Verdict::unknown;
  /// granted: one for each part of the claim, in its order; empty if the store has no fences.
  std::vector<Fence> fences{};
  /// granted: this long before the call. Its time runs since then.
  Duration age{};
  /// queued: how many are ahead.
  std::uint32_t place = 0;
  /// queued: ask again after this time at the latest, because something in the way ends by then
  /// and the store itself tells nobody. The core asks again at Traits::heartbeat anyway.
  std::optional<Duration> look_again{};
  /// unknown: why.
  std::optional<Error> why{};
  /// unknown: it was granted, and had to be taken back. Others may be in line meanwhile, so such
  /// failures count also if they are not in a row.
  bool undone = false;
  /// unknown: nothing of this call has left for the store, or will. So there is nothing to clean up.
  bool unsent = false;
  /// busy, for a claim with `instead_of`: a piece of it may have taken over all the same, on a store
  /// that decides piece by piece.
  bool partly = false;

  static Answer failed(Error error) {
    return {.verdict = Verdict::unknown,
            .fences = {},
            .age = {},
            .place = 0,
            .look_again = {},
            .why = std::move(error)};
  }
};

/// How long a call may take, and on whose thread.
struct Call {
  /// Not answered by then: the core counts it as unknown and stops listening. A backend should give
  /// up by then, too.
  TimePoint deadline = TimePoint::max();
  /// The calling thread has nothing to do until the reply comes: the backend may work on it, block,
  /// and reply before it returns. If false, the call must return at once (the caller is the one
  /// thread that watches every deadline of a client).
  bool caller_waits = false;
};

/// Called at most once, from any thread, also before the call returned. Must not be called with a
/// lock held that the backend needs in order to serve the next call.
using Reply = std::function<void(Answer)>;
using Report = std::function<void(Snapshot)>;
/// Tells that this owner, queued or holding, should ask now. A hint, never a proof: it may come
/// late, twice, for nothing, or not at all.
using WakeSink = std::function<void(const Owner&)>;
/// Told what about the store is risky for locks, in words.
using WarnSink = std::function<void(const Error&)>;

/// Thread-safe. One client owns it; its destructor makes sure that no reply comes afterwards.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// What this store can promise. Constant.
  [[nodiscard]] virtual const Traits& traits() const noexcept = 0;

  /// Takes all parts of the claim, or none. Idempotent per owner:
  ///  - not known yet: granted, or (with `queue`) queued, or busy. Without `queue` it leaves no
  ///    trace when it fails. It never overtakes a waiter that it conflicts with.
  ///  - queued already: keeps its place; this is its heartbeat.
  ///  - holding already: granted, and the TTL starts anew (it never gets shorter).
  /// A claim with `instead_of` takes over what that owner holds, in one step, or leaves it alone:
  /// weaker modes at once; stronger ones only when no other holder is in the way, and ahead of the
  /// queue (which waits for this holder anyway). While one holder is queued to become stronger,
  /// another one that tries on the same resource gets busy: waiting for each other would never end.
  /// Parts that don't become stronger wait for nobody. If that owner does not hold all of it any
  /// more: lost. What could not be confirmed is never given back here, as that would end the hold:
  /// the core asks again, for weaker modes.
  virtual void acquire(const Claim& claim, bool queue, Call call, Reply reply) = 0;

  /// Starts the TTL of what this owner holds anew, with the claim's ttl and process; it never takes
  /// away time that was already given, so that messages may arrive in any order. Never creates:
  /// if any part is not held by this owner (any more), lost, and nothing is changed.
  virtual void renew(const Claim& claim, Call call, Reply reply) = 0;

  /// Forgets this owner on the parts named, holding or queued, and wakes whoever is next.
  virtual void release(const Claim& claim, Call call, Reply reply) = 0;

  /// Who holds and who waits. Expired ones are not shown. Atomic for one resource.
  virtual void inspect(const Query& query, Call call, Report report) = 0;

  /// Called once, before anything else.
  virtual void on_wake(WakeSink sink) = 0;
  /// The same, for a store that looks at how its server is set up.
  virtual void on_warning(const WarnSink& /*sink*/) {}

  /// A caller that is blocked until `signal` is set or `until` has passed lends its thread: a
  /// backend with a socket drives it meanwhile. May return early.
  virtual void lend(Signal& signal, TimePoint until) { signal.wait_until(until); }
};

/// A store's address, taken apart: scheme:[//[user[:password]@]host[:port][,host…]][/path][?query].
/// `to_string` never shows the password.
struct Url {
  std::string scheme;
  std::string user;
  std::string password;
  std::string authority;  ///< what stands between // and the path, without user and password
  std::string path;       ///< percent-decoded; without authority, all that follows the scheme
  std::map<std::string, std::string, std::less<>> query;  ///< percent-decoded

  /// Throws Error (invalid).
  static Url parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;

  /// Takes an option out of `query`, or the default.
  std::string take(std::string_view name, std::string fallback = "");
  /// Throws Error (invalid) if an option was left that nobody took: it names it, and what there is.
  void expect_all_taken(const std::vector<std::string_view>& known) const;
};

/// How `connect` finds a store: every store's target defines one `stores::<name>()`.
struct StoreEntry {
  std::string name{};
  std::vector<std::string> schemes{};
  std::string example{};  ///< a URL to show in errors and help
  std::unique_ptr<Backend> (*open)(Url url, const std::shared_ptr<Clock>& clock) = nullptr;
  /// What an administrator may run in the store instead of letting it set itself up; none: it needs
  /// nothing.
  std::string (*schema)() = nullptr;
};

namespace stores {
/// The stores that this build knows.
std::vector<StoreEntry> all();
/// The store of a URL, for whoever puts something around it: `chaos(stores::open(url))`. Throws
/// Error (invalid), and what the store throws.
std::unique_ptr<Backend> open(std::string_view url, const std::shared_ptr<Clock>& clock = {});
}  // namespace stores

}  // namespace interlock
