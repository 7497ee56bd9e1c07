// Every way to acquire, once, for every kind of lock.
#pragma once

#include <coroutine>
#include <memory>
#include <string>
#include <vector>

#include "interlock/client.hpp"

namespace interlock {

namespace core {
struct Template;
}

/// A claim that is ready to be made: Mutex and MultiLock are one, RwLock has two of them. Cheap to
/// copy. Thread-safe: any number of threads may acquire through one object.
///
/// All waiting forms are fair: first come, first served, higher priority first. Cancelling or
/// timing out leaves nothing behind. The asynchronous forms take no thread while they wait.
class Acquirer {
 public:
  /// Throws Error (invalid, invalid_ttl, invalid_owner) for what no store would take.
  Acquirer(Client client, std::vector<Part> parts, Options options);

  /// Waits for it, as long as Options::max_wait. Throws Error: timed_out, cancelled, unreachable, …
  Lease acquire(std::stop_token stop = {}) const;
  /// One shot: never waits, never queues, never overtakes a waiter.
  Attempt try_acquire() const;
  /// Waits at most so long. Throws Error if the store fails; busy, late or cancelled is a value.
  Attempt try_acquire_for(Duration limit, std::stop_token stop = {}) const;
  /// One-shot tries with pauses, not in the queue: for those who would rather not be in line.
  Attempt try_acquire_times(Retry tries, std::stop_token stop = {}) const;

  /// Any wait; `then` is called once, on the client's executor. Store failures are in the Attempt.
  void acquire(const Wait& wait, Callback then) const;

  /// `Lease lease = co_await mutex.async_acquire();` in any coroutine, resumed on the client's
  /// executor. Throws as acquire() does. `async_try_acquire(Wait)` gives an Attempt instead.
  [[nodiscard]] auto async_acquire(std::stop_token stop = {}) const;
  [[nodiscard]] auto async_try_acquire(Wait wait) const;

  [[nodiscard]] const Client& client() const noexcept { return client_; }
  [[nodiscard]] const std::string& resource() const noexcept;

 private:
  [[nodiscard]] Wait max_wait(std::stop_token stop) const;

  Client client_;
  std::shared_ptr<const core::Template> template_;
};

namespace detail {

/// Suspends the coroutine until the acquisition is over. Lives in the coroutine's frame.
template <bool kThrows>
class Acquiring {
 public:
  Acquiring(const Acquirer& acquirer, Wait wait) : acquirer_(acquirer), wait_(std::move(wait)) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    acquirer_.acquire(wait_, [this, caller](Attempt attempt) {
      attempt_.emplace(std::move(attempt));
      caller.resume();
    });
  }
  auto await_resume() {
    if constexpr (kThrows) {
      return std::move(*attempt_).value();
    } else {
      return std::move(*attempt_);
    }
  }

 private:
  Acquirer acquirer_;
  Wait wait_;
  std::optional<Attempt> attempt_;
};

}  // namespace detail

inline auto Acquirer::async_acquire(std::stop_token stop) const {
  return detail::Acquiring<true>(*this, max_wait(std::move(stop)));
}

inline auto Acquirer::async_try_acquire(Wait wait) const {
  return detail::Acquiring<false>(*this, std::move(wait));
}

}  // namespace interlock
