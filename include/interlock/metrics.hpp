// Counts what locks do, for Prometheus and all that read its format.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "interlock/inspect.hpp"
#include "interlock/observer.hpp"

namespace interlock {

struct MetricsOptions {
  /// The group that a lock counts for: a label, so let there be few of them ("billing", "reports"),
  /// and never a name for each lock. Called with each event, from any thread: it has to be quick,
  /// and to say the same for the same name. Empty: all locks are one group, "".
  std::function<std::string(std::string_view resource)> group{};
};

/// An observer for any number of clients:
///
///     auto metrics = std::make_shared<interlock::Metrics>();
///     auto locks = interlock::connect(url, {.observer = metrics});
///     …                                       // in your HTTP server, on GET /metrics:
///     response.body = metrics->text();
///
/// All of these have the labels `store` ("redis"), `node` (its address without secrets,
/// "redis://locks.internal:6379") and `group`:
///
///     interlock_acquisitions_total     ended, by `outcome`: granted, busy, timed_out, exhausted,
///                                      cancelled, refused
///     interlock_wait_seconds           histogram: from asking to granted
///     interlock_hold_seconds           histogram: from granted to the end of the lease
///     interlock_waiting                gauge: acquisitions under way
///     interlock_held                   gauge: leases
///     interlock_lost_total             leases that ended before their time
///     interlock_renewals_total, interlock_renewal_failures_total
///     interlock_release_failures_total releases that were not confirmed
///
/// And with `store` and `node` only: interlock_disconnects_total, interlock_reconnects_total.
///
/// Counting takes no lock: some atomic additions. Thread-safe.
class Metrics final : public Observer {
 public:
  /// More groups than this count as the group "other": a label must not grow without bound.
  static constexpr std::size_t kMostGroups = 100;

  explicit Metrics(MetricsOptions options = {});
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void on(const Observation& observation) noexcept override;

  /// In the Prometheus text format: Content-Type "text/plain; version=0.0.4".
  [[nodiscard]] std::string text() const;

 private:
  class Table;
  const MetricsOptions options_;
  const std::unique_ptr<Table> table_;
};

/// What a store knows about all its locks, of this client and others, in the same format. With the
/// labels `store` and `node`:
///
///     interlock_store_locks                 gauge: names that are held
///     interlock_store_holders, interlock_store_waiters
///     interlock_store_oldest_hold_seconds   0 if nothing is held
///     interlock_store_longest_wait_seconds  0 if nobody waits
///
/// With `names`, also for each lock, with the label `lock`: interlock_lock_holders, …_waiters,
/// …_oldest_hold_seconds, …_longest_wait_seconds. Fine for dozens of locks, and not for thousands.
std::string to_metrics(const Snapshot& snapshot, const Traits& store, bool names = false);

}  // namespace interlock
