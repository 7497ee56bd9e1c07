// A store and its clients as queues: what happens to thousands of processes on one store, without
// them. Events in the order of their time, nothing else; the same seed gives the same run.
//
// A process thinks, asks for a lock, holds it, gives it back. Each call takes the caller's CPU, the
// way there, its turn at the server, and the way back. The rules are the store's: who comes second
// queues, a release wakes the next in line, who is woken asks again, waiters ask now and then, leases
// are renewed every third of their TTL.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cli::scale {

using Duration = std::chrono::nanoseconds;

/// What a call comes to. They cost the server differently.
enum class Step : std::uint8_t {
  take,   ///< an acquire that is granted at once
  join,   ///< one that has to queue
  claim,  ///< a waiter that was woken, and is granted
  beat,   ///< a waiter that asks, and goes on waiting
  free,   ///< a release that nobody waits for
  pass,   ///< one that wakes the next
  renew,
};
inline constexpr std::size_t kSteps = 7;
inline constexpr std::array<const char*, kSteps> kStepNames = {"take", "join", "claim", "beat",
                                                               "free", "pass", "renew"};

struct Cost {
  Duration fixed{};         ///< CPU of the server
  Duration per_record{};    ///< and for each who holds or waits at the same place,
  Duration per_doubling{};  ///< and each time that these are twice as many
  bool logged = false;      ///< it counts when it is on disk
};

/// What only one call at a time may touch.
enum class Gate : std::uint8_t {
  none,
  lock,   ///< one lock: a row of a database
  shard,  ///< one of 4096 files
};

/// How a store works, and what its work costs.
struct Store {
  std::string name{};
  std::array<Cost, kSteps> costs{};
  Duration client{};   ///< CPU of the caller for one call
  Duration woken{};    ///< CPU of a waiter's process around being told, that nobody waits for
  Duration one_way{};  ///< from a client to the server, or back
  Duration push{};     ///< how much longer it takes until a waiter is told
  Duration idle{};     ///< CPU of a server that runs out of calls, and goes to sleep

  /// How much more each call costs with twice as many processes, from so many on.
  double crowding = 0;
  int crowding_from = 16;

  int servers = 1;  ///< locks are spread over them by name
  int votes = 1;    ///< so many are asked at once, and a majority decides
  int threads = 1;  ///< calls that a server works on at once; 0: as many as it has cores
  int cores = 0;    ///< of each server; 0: as many as it needs
  Gate gate = Gate::none;
  Duration gate_poll{};     ///< who finds it shut looks again after this; 0: is let in in turn
  Duration flush{};         ///< one write of the log, which takes all that came during the last one
  bool on_clients = false;  ///< there is no server: callers work themselves, on one machine

  Duration beat{std::chrono::seconds(1)};         ///< how often a waiter asks,
  Duration first_beat{std::chrono::seconds(1)};   ///< the first in line,
  Duration second_beat{std::chrono::seconds(1)};  ///< and the second
  bool next_looks = false;                        ///< a grant to a waiter makes the next one ask

  [[nodiscard]] Cost& cost(Step step) { return costs.at(static_cast<std::size_t>(step)); }
  [[nodiscard]] const Cost& cost(Step step) const {
    return costs.at(static_cast<std::size_t>(step));
  }
};

/// What the processes do.
struct Workload {
  int processes = 1;
  int locks = 0;  ///< 0: each process has one of its own
  Duration hold{};
  Duration think{};
  bool steady = false;  ///< hold and think always take the same time; else they are exponential
  Duration ttl{std::chrono::seconds(30)};
  double skew = 0;  ///< of Zipf's law: 0: all locks alike, 1: the second half as often as the first
  double shared = 0;         ///< which part of the acquisitions shares
  int leases = 0;            ///< that each process keeps alive besides
  int client_cores = 0;      ///< of all clients together; 0: as many as they need
  bool one_machine = false;  ///< server and clients share client_cores
  double spread = 0.25;      ///< of the costs: 0: constant, 1: exponential
  std::uint64_t seed = 1;
  Duration duration{std::chrono::seconds(10)};  ///< of simulated time, after a fifth more
};

/// What was seen.
struct Prediction {
  double cycles_per_second = 0;
  Duration mean_wait{};  ///< from asking to having it
  Duration median_wait{};
  Duration p99_wait{};
  Duration longest_wait{};
  double calls_per_cycle = 0;      ///< to the store
  double wakes_per_cycle = 0;      ///< messages to waiters
  double messages_per_second = 0;  ///< both
  double server_load = 0;          ///< of the busiest server: 1 is all that it can do
  double log_load = 0;
  double gate_load = 0;    ///< of the busiest one
  double client_load = 0;  ///< of the clients' cores; 0: they have as many as they need
  double lock_load = 0;    ///< part of the time that the busiest lock was not free
  Duration longest_call{};
  Duration latest_renewal{};  ///< how long one took at most
  std::uint64_t cycles = 0;
  std::uint64_t events = 0;
  [[nodiscard]] double messages_per_cycle() const { return calls_per_cycle + wakes_per_cycle; }
};

/// For tests: all that the store decides, in its order.
struct Happening {
  enum class What : std::uint8_t { queued, granted, released } what{};
  Duration at{};
  int process = 0;
  int lock = 0;
  bool shared = false;
};
using Watch = std::function<void(const Happening&)>;

Prediction predict(const Store& store, const Workload& workload, const Watch& watch = {});

/// What will be short first, in a word or two: "the lock", "the server", "the disk", …; "nothing".
std::string limit(const Prediction& seen);

}  // namespace cli::scale
