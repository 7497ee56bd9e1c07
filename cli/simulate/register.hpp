// A witness outside of every lock and store: told who is inside of what, it knows when two are that
// must not be.
//
// Whoever was granted something enters before it works, and leaves before it gives it back. What must
// hold:
//
//   1. No overlap. Two are never inside of one resource (or of a table and one of its rows) at a moment
//      at which both leases are valid, unless both share it. A lease is valid from its grant until its
//      deadline, on the clock that the processes of a host share. So a holder that was stopped for
//      longer than its TTL may still be inside when the next one enters, and so may one whose lock was
//      broken: it can't know yet. That is what fences are for:
//   2. Fences rise. Nobody with a valid lease enters with a fence that is not above all that were seen.
//   3. No update is lost. Each resource has a number. Entering reads it, leaving writes one more, and a
//      write or an entry with an older fence than the last one seen is refused. A write that is not
//      refused must find what its writer has read, whatever became of anybody's lease.
//   4. No lease ends early. One that is lost before its deadline was broken by somebody here.
//
// A process that is killed leaves its marks; whoever kills it takes them away, see Pause.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interlock/claim.hpp"
#include "interlock/clock.hpp"

namespace cli::simulation {

/// Of one worker, in one resource. Plain data, as all here that processes share.
struct Mark {
  bool used;
  bool exclusive;
  bool fenced;
  std::uint32_t resource;
  interlock::Owner owner;
  std::uint64_t fence;
  std::uint64_t read;
  std::int64_t valid_until;  ///< as it was when it entered; a renewal may have moved it
  std::int64_t intruded_at;  ///< another one entered then; 0: nobody did
  std::uint32_t intruder;
};

constexpr std::size_t kMostParts = 4;
using Marks = std::array<Mark, kMostParts>;

struct Guarded {
  std::uint64_t fence;  ///< the highest one seen
  std::uint64_t number;
};

struct Ledger {
  pthread_mutex_t mutex;
  std::uint64_t entries;
  std::uint64_t writes;
  std::uint64_t refused;   ///< entries and writes with an old fence
  std::uint64_t outlived;  ///< overlaps with a holder whose lease had ended
  std::atomic<std::uint64_t> violations;
  struct Text {
    std::array<char, 320> text;
  };
  std::array<Text, 8> told;  ///< the first ones of them
  struct Eviction {
    interlock::Owner owner;
    std::int64_t at;
  };
  std::array<Eviction, 256> evicted;  ///< the last ones
  std::uint64_t evictions;
};

/// What the register has to know of a lease.
struct Standing {
  interlock::Owner owner;
  std::function<bool()> valid;
  std::function<interlock::TimePoint()> valid_until;
};

/// A resource to enter.
struct Entrance {
  std::uint32_t resource = 0;
  bool exclusive = true;
  std::optional<std::uint64_t> fence;  ///< empty: the store has none
};

/// "worker 2.1": thread 1 of process 2, if each has so many `threads`; 0: there is one process only.
std::string worker_name(std::uint32_t worker, std::uint32_t threads);

class Register {
 public:
  /// All zeros at first, and prepared once. With a `table`, resource 0 is one, and the others are
  /// its rows. `threads`: see worker_name.
  Register(Ledger& ledger, std::span<Marks> workers, std::span<Guarded> resources, bool table,
           std::uint32_t threads = 0)
      : ledger_(ledger),
        workers_(workers),
        resources_(resources),
        table_(table),
        threads_(threads) {}
  static void prepare(Ledger& ledger);

  /// False: refused, since a newer fence was seen; then there is nothing to leave.
  bool enter(std::uint32_t worker, const std::vector<Entrance>& entrances, const Standing& lease);
  void leave(std::uint32_t worker, std::uint32_t resource, const Standing& lease);
  /// Its lease was lost before its deadline.
  void lost_early(std::uint32_t worker, std::uint32_t resource, const interlock::Owner& owner);
  /// This owner is about to be evicted, and won't know for a while.
  void evicting(const interlock::Owner& owner);
  /// Something else that must not be.
  void violated(const std::string& what);

  /// While it lives, nobody is in the middle of entering or leaving: the time to stop a process, or to
  /// kill it and forget it.
  class Pause {
   public:
    explicit Pause(Register& of);
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();
    void forget(std::uint32_t worker);

   private:
    Register& of_;
  };

  [[nodiscard]] bool in_order() const { return ledger_.violations == 0; }
  [[nodiscard]] std::vector<std::string> violations() const;

 private:
  [[nodiscard]] bool conflict(const Mark& mark, const Entrance& entrance) const;
  /// When it was evicted, if it was; the end of time if not.
  [[nodiscard]] std::int64_t evicted_at(const interlock::Owner& owner) const;
  void intrude(std::uint32_t intruder, std::uint32_t holder, Mark& mark, std::int64_t now);
  void write(std::uint32_t worker, const Mark& mark, bool valid);
  void tell(const std::string& what);
  [[nodiscard]] std::string name(std::uint32_t worker) const {
    return worker_name(worker, threads_);
  }
  void tell_overlap(std::uint32_t intruder, std::uint32_t holder, const Mark& mark);

  Ledger& ledger_;
  std::span<Marks> workers_;
  std::span<Guarded> resources_;
  bool table_;
  std::uint32_t threads_;
};

}  // namespace cli::simulation
