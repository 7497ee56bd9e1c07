// What an acquisition came to.
#pragma once

#include <optional>
#include <string_view>

#include "interlock/error.hpp"
#include "interlock/lease.hpp"

namespace interlock {

enum class Outcome {
  granted,    ///< there is a lease
  busy,       ///< one shot, and it was taken
  timed_out,  ///< waited as long as allowed
  exhausted,  ///< tried as often as allowed
  cancelled,  ///< the stop token fired
  failed,     ///< the store did not answer or refused: error() says what
};

std::string_view to_string(Outcome outcome) noexcept;

/// Reads like an optional Lease, and can be asked why there is none:
///
///     if (auto lease = mutex.try_acquire_for(5s)) { use(*lease); }
///     else { log("no luck after", lease.waited()); }
class [[nodiscard]] Attempt {
 public:
  explicit Attempt(Lease lease) : lease_(std::move(lease)) {}
  Attempt(Outcome outcome, Error error, Duration waited, int attempts)
      : outcome_(outcome), error_(std::move(error)), waited_(waited), attempts_(attempts) {}

  explicit operator bool() const noexcept { return lease_.has_value(); }
  /// The lease; throws error() if there is none.
  Lease& operator*() & { return lease(); }
  Lease&& operator*() && { return std::move(lease()); }
  Lease* operator->() { return &lease(); }

  /// The lease, or throws error().
  [[nodiscard]] Lease value() &&;

  [[nodiscard]] Outcome outcome() const noexcept { return lease_ ? Outcome::granted : outcome_; }
  [[nodiscard]] Duration waited() const { return lease_ ? lease_->waited() : waited_; }
  [[nodiscard]] int attempts() const { return lease_ ? lease_->attempts() : attempts_; }
  /// Why there is no lease, with the lock's name, for people. Only if there is none.
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  [[nodiscard]] Lease& lease();

  std::optional<Lease> lease_;
  Outcome outcome_ = Outcome::granted;
  std::optional<Error> error_;
  Duration waited_{};
  int attempts_ = 0;
};

}  // namespace interlock
