// A history, put together: calls, beliefs, leases and what disturbed them. Keeps pointers to the events.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "history.hpp"

namespace torture::checks {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

/// How exact the checks are, in nanoseconds.
struct Tolerances {
  std::int64_t grace = 4 * kSecond;       ///< a healed fault may still be felt for so long
  std::int64_t early = 5 * kMillisecond;  ///< a limit may be over so much before its time
  /// A limit below this may be over before any answer can have come: *timed out* says nothing then.
  std::int64_t fair_chance = 250 * kMillisecond;
  std::int64_t bound = 6 * kSecond;  ///< a bounded wait may take so much longer: one call's timeout
  std::int64_t longest_call = 60 * kSecond;  ///< a call that does not wait ends within so long
  std::int64_t forgotten =
      60 * kSecond;  ///< stores forget a waiter that fell silent within so long
  std::int64_t cleaned_up = 2 * kSecond;  ///< what a call left behind is gone so long after its end
  std::int64_t order_asked = 200 * kMillisecond;  ///< asked so much earlier: surely first in line
  std::int64_t order_granted = 250 * kMillisecond;
  std::int64_t long_stall =
      1 * kSecond;  ///< a process that did not run for so long may miss answers
  std::int64_t standstill = 400 * kMillisecond;  ///< of the whole machine: as bad as a fault
  std::int64_t more_threads = 20;  ///< what callbacks of a client run on, at most, and a few more
  std::int64_t more_descriptors = 8;
  std::int64_t more_memory = 32 << 20;
  double most_cpu = 0.05;  ///< of a processor, by an idle process
};

enum class Mode { exclusive, shared, slots };

struct Part {
  std::string r{};
  Mode mode = Mode::exclusive;
  std::int64_t n = 1;  ///< slots
  std::int64_t c = 0;  ///< capacity
};

/// From `ask` to `told`. An event that is missing is null.
struct Call {
  std::string op{}, worker{}, verb{}, via{}, form{}, lease{}, identity{}, answer{}, errc{};
  std::int64_t hand = 0, ttl = 0, priority = 0;
  std::optional<std::int64_t> limit{};
  bool hierarchy = false;
  bool renewed = true;
  std::vector<Part> parts{};
  const Event* ask = nullptr;
  const Event* told = nullptr;
  const Event* cancel = nullptr;

  [[nodiscard]] bool acquires() const { return verb == "acquire"; }
  [[nodiscard]] std::int64_t from() const { return ask->t; }
  [[nodiscard]] std::int64_t to() const { return told == nullptr ? kNever : told->t; }
};

/// Somebody believes to hold a resource, or a part of those above it. From `from`, until right before `to`.
struct Belief {
  Part part{};
  std::string lease{}, owner{}, identity{}, worker{}, op{};
  std::int64_t from = 0, to = 0;
  std::int64_t asked = 0, ttl = 0;
  std::optional<std::uint64_t> fence{};
  bool adopted = false;
  bool above = false;  ///< of what was asked for: held because of the hierarchy
  const Event* holds = nullptr;
  const Event* end = nullptr;  ///< null: `until` ended it, if anything
};

struct Lease {
  std::string id{}, worker{};
  std::vector<std::string> owners{};
  std::int64_t ttl = 0;
  std::int64_t until = 0;
  bool renewed = true;
  std::vector<const Event*> seen{};  ///< `holds` and `valid`
  std::vector<const Event*> lost{};
  std::vector<std::size_t> calls{};  ///< what was done with it, and the call that gave it
};

/// A fault with what heals it.
struct Disturbance {
  std::int64_t from = 0;
  std::int64_t to = kNever;
  bool voids = false;
  bool disturbs = true;
  bool brings_back = false;
  const Event* event = nullptr;
};

struct Life {
  const Event* start = nullptr;
  const Event* end = nullptr;
  const Event* killed = nullptr;
  std::vector<Disturbance> stalls{};  ///< stopped, or did not get to run
};

class Index {
 public:
  /// The events have to be in the order of time, and outlive this.
  explicit Index(const std::vector<Event>& events, Tolerances tolerances = {});

  [[nodiscard]] const Tolerances& tolerances() const { return tolerances_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] std::vector<const Event*> of_kind(std::string_view kind) const;
  /// In the order in which they were asked.
  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }
  [[nodiscard]] const Call* call(const std::string& op) const;
  /// Of each resource, in the order of `from`.
  [[nodiscard]] const std::map<std::string, std::vector<Belief>>& beliefs() const {
    return beliefs_;
  }
  [[nodiscard]] const std::map<std::string, Lease>& leases() const { return leases_; }
  [[nodiscard]] const std::map<std::string, Life>& lives() const { return lives_; }
  [[nodiscard]] const std::vector<Disturbance>& faults() const { return faults_; }
  /// When the first `breaks` of this owner began.
  [[nodiscard]] const Event* broken(const std::string& owner) const;

  /// A fault that clients may notice, in this time; null if there is none.
  [[nodiscard]] const Event* disturbed(std::int64_t from, std::int64_t to) const;
  /// A fault that may have brought back claims that had ended has begun by then.
  [[nodiscard]] bool brought_back(std::int64_t by) const;
  /// This process was stopped or did not get to run, for at least so long, in this time.
  [[nodiscard]] bool stalled(const std::string& worker, std::int64_t from, std::int64_t to,
                             std::int64_t at_least = 150 * kMillisecond) const;
  /// For how long it was so, in this time.
  [[nodiscard]] std::int64_t stalled_for(const std::string& worker, std::int64_t from,
                                         std::int64_t to) const;

  /// What the round gives a call at most; 0: what the store does by itself.
  [[nodiscard]] std::int64_t timeout() const noexcept { return timeout_; }

 private:
  void read(const Event& event);
  void believe(const Event& event);
  void name_successor(const std::string& owner, const std::string& resource);
  void end_beliefs(const std::string& lease, const std::string& resource, const Event& by);
  void collect();

  const std::vector<Event>& events_;
  Tolerances tolerances_;
  std::int64_t recovers_within_ = 0;
  std::int64_t timeout_ = 0;
  std::vector<Call> calls_;
  std::map<std::string, std::size_t> by_op_;
  std::map<std::string, Lease> leases_;
  std::map<std::string, Life> lives_;
  std::vector<Disturbance> faults_;
  std::map<std::string, const Event*> broken_;
  std::map<std::string, std::vector<Belief>> beliefs_;
  std::vector<Belief> all_;                               ///< while it is read
  std::map<std::string, std::vector<std::size_t>> held_;  ///< lease: beliefs that have not ended
};

/// "a" and "a/b" of "a/b/c".
std::vector<std::string> above(const std::string& resource);
/// A field of an event, or what is given instead.
std::string text(const Event& event, const char* field);
std::int64_t number(const Event& event, const char* field, std::int64_t otherwise = 0);
bool flag(const Event& event, const char* field, bool otherwise = false);

}  // namespace torture::checks
