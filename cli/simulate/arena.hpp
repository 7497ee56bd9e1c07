// What the workers of a simulation share, whether they are threads or processes: the plan, the
// register, and what each of them has seen.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "descriptor.hpp"
#include "histogram.hpp"
#include "interlock/error.hpp"
#include "simulate/register.hpp"

namespace cli::simulation {

enum class Kind : std::uint8_t { time, speed, stress, escalation };

/// What was asked for. Plain data, as all below.
struct Plan {
  Kind kind = Kind::time;
  std::uint32_t threads = 1;  ///< of each process
  std::uint32_t processes = 1;
  std::uint32_t resources = 1;
  interlock::Duration duration{};
  interlock::Duration ttl{};
  interlock::Duration hold{};  ///< at most
  std::uint64_t seed = 0;
  bool no_lock = false;

  [[nodiscard]] std::uint32_t workers() const { return threads * processes; }
  /// For worker_name.
  [[nodiscard]] std::uint32_t named_by_process() const { return processes > 1 ? threads : 0; }
};

/// For the picture.
struct Event {
  enum Kind : std::uint8_t { waiting, held, cancelled, lost, stopped, killed };
  interlock::Duration begin;  ///< since the start
  interlock::Duration end;
  Kind kind;
  std::uint8_t lane;  ///< of several resources that are held together, the first, second, …
  std::uint8_t lanes;
  std::uint32_t resource;
};

/// What one of them has seen. Only it writes here, and after its end, whoever ended it.
struct Tally {
  static constexpr std::size_t kRoles = 3;
  std::array<Histogram, kRoles> waits;  ///< from the call to the grant; see role_names()
  Histogram holds;
  Histogram releases;
  std::uint64_t busy, timed_out, cancelled, lost, partial, evicted, unanswered;
  Event now;  ///< what it is doing: end is 0
  std::uint32_t events;
};

struct Shared {
  Plan plan;
  std::array<char, 16> run;           ///< makes the names of this run its own
  std::atomic<std::int64_t> started;  ///< 0: not yet
  std::atomic<std::uint32_t> ready;   ///< processes
  std::atomic<bool> stop;
  std::atomic<std::uint64_t> kills, stops;
  std::atomic<bool> has_error;
  interlock::Errc errc;
  std::array<char, 512> error;
  Ledger ledger;
};

/// In memory that processes can share; it begins as zeros.
class Arena {
 public:
  explicit Arena(const Plan& plan);
  /// In another process.
  explicit Arena(Descriptor memory);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  [[nodiscard]] int fd() const { return memory_.get(); }
  [[nodiscard]] const Plan& plan() const { return shared_->plan; }
  [[nodiscard]] Shared& shared() { return *shared_; }
  [[nodiscard]] const Shared& shared() const { return *shared_; }
  [[nodiscard]] Tally& tally(std::uint32_t worker) { return tallies_[worker]; }
  [[nodiscard]] const Tally& tally(std::uint32_t worker) const { return tallies_[worker]; }
  [[nodiscard]] std::span<const Event> events(std::uint32_t worker) const;
  /// What does not fit is left out.
  void add(std::uint32_t worker, const Event& event);
  [[nodiscard]] bool events_left_out() const;
  [[nodiscard]] Register& watch() { return *register_; }
  [[nodiscard]] const Register& watch() const { return *register_; }

  /// The name of the lock for it.
  [[nodiscard]] std::string name(std::uint32_t resource) const;
  [[nodiscard]] std::vector<std::string> names() const;
  /// Since the start.
  [[nodiscard]] interlock::Duration now() const;
  /// Everybody ends, and this is why. The first one counts.
  void fail(const interlock::Error& error);

 private:
  void map(std::size_t bytes);
  void lay_out(const Plan& plan);

  Descriptor memory_;
  std::span<std::byte> bytes_;
  Shared* shared_ = nullptr;
  std::span<Tally> tallies_;
  std::span<Event> events_;
  std::size_t events_each_ = 0;
  std::optional<Register> register_;
};

/// What the waits of a tally are for, by their place; "" if there is no such.
const char* role_name(Kind kind, std::size_t role);
const char* to_string(Kind kind);

}  // namespace cli::simulation
