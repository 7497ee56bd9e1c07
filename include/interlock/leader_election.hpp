// One leader in a cluster, and everybody else ready to take over.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "interlock/client.hpp"

namespace interlock {

/// Who leads, as the store knows it.
struct Leader {
  std::string label{};
  std::string host{};
  std::int64_t pid = 0;
  std::chrono::system_clock::time_point since{};  ///< for people
  Fence term{};
};

struct ElectionOptions {
  /// How long a leader that was killed or cut off goes on to count as the leader. It renews itself
  /// every third of it.
  Duration ttl = std::chrono::seconds(30);
  /// How long before anybody else could lead this candidate counts itself out: the time that on_loss
  /// has to stop the work. Empty: a tenth of the TTL. At most a third of it.
  std::optional<Duration> margin{};
  /// Others see it in `interlock who`, and in leader().
  std::string label{};
  /// Of those who wait, higher ones lead first. Nobody is ousted.
  std::int32_t priority = 0;

  // Called one at a time, in the order of events, on a thread of the election's own, and never after
  // its destructor has returned. They may call all of the election but campaign(), must not throw or
  // destroy it, and while one runs none of the others does: start the work in on_gain, don't do it.

  /// It leads, in this term.
  std::function<void(Fence term)> on_gain{};
  /// It leads no more, and why, for people: stop the work, and return when it has stopped. After a
  /// loss there are about `margin` left for that. When it resigns, the next one waits for the return.
  /// Once for each on_gain.
  std::function<void(const std::string& why)> on_loss{};

  /// How often observers look at the store: from a millisecond to a day.
  Duration look_every = std::chrono::seconds(1);
};

/// Candidates with the same cluster name wait in line for the lock `leader:{cluster}`; whoever has it
/// leads. An orderly end (resign, the destructor, the end of the process) hands over to the next one
/// within a round trip; one that was killed is succeeded when its TTL has ended, or sooner where the
/// store notices.
///
///     LeaderElection election(locks, "orders", {.on_gain = [&](Fence term) { worker.start(term); },
///                                               .on_loss = [&](auto&) { worker.stop(); }});
///     election.start();
///
/// A leader that is stopped (a suspended machine, a long pause) can't know it, and goes on where it was
/// when it wakes. Send the term along with whatever it writes, and have that refuse older ones; see
/// fenced.hpp.
///
/// Thread-safe. One thread of its own, and one more with the first observer. In a forked child it
/// leads nothing.
class LeaderElection {
 public:
  /// Does not campaign yet. Throws Error (invalid) for a name or an option that no store would take,
  /// (unsupported) if the store has no fences.
  LeaderElection(Client client, const std::string& cluster, ElectionOptions options = {});
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;
  /// Resigns. Waits for on_loss, for ClientOptions::release_timeout at most after that, and for the end
  /// of a look at the store if somebody observes (Traits::call_timeout).
  ~LeaderElection();

  /// Campaigns in the background until resign(), and again after each loss. A store that can't be
  /// reached is asked until it can.
  void start();
  /// Waits in line until it leads; gives the term. At once if it leads already. Does not campaign again
  /// after a loss. Throws Error: cancelled (by `stop` or resign()), unreachable, …
  Fence campaign(const std::stop_token& stop = {});
  /// One shot: leads now, or somebody else does. Never waits, never overtakes who waits.
  bool try_lead();
  /// Leads no more, and campaigns no more until it is told to: all who wait in campaign() give up.
  /// Comes back when on_loss has and the store has been told; called from a callback, that happens
  /// after the callback returned. Fine if it does not lead.
  void resign();

  /// By this machine's own clock, at this moment: false as soon as the lease can't be relied on, however
  /// late anybody else notices. No network, cheap.
  [[nodiscard]] bool is_leader() const;
  /// The number of the term, larger than all before; nothing if it does not lead.
  [[nodiscard]] std::optional<Fence> term() const;
  /// Stopped when the present term is over, lost or resigned, before on_loss is called; stopped already
  /// if it does not lead. Callbacks on it run on a background thread: keep them short, and don't
  /// resign() there.
  [[nodiscard]] std::stop_token over() const;

  /// Asks the store who leads; nothing: nobody does at this moment. Throws Error (unreachable).
  [[nodiscard]] std::optional<Leader> leader() const;
  /// Calls it with who leads now, and then with each change; nothing: nobody does. Changes are found by
  /// looking at the store every `look_every`, so a leader that came and went in between is not seen, and
  /// while the store can't be reached nothing is told. For as long as the election lives. No candidacy
  /// is needed.
  void observe(std::function<void(const std::optional<Leader>&)> changed);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace interlock
