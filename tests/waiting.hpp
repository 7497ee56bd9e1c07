// Somebody who waits for a lock while the test goes on.
#pragma once

#include <future>
#include <stop_token>
#include <utility>

#include "eventually.hpp"
#include "interlock/interlock.hpp"

namespace interlock::testing_support {

/// An acquisition on a thread of its own. Given up when the object goes out of scope.
class Waiting {
 public:
  explicit Waiting(const Acquirer& acquirer, Duration limit = kPatience)
      : attempt_(std::async(std::launch::async, [acquirer, limit, stop = stop_.get_token()] {
          return acquirer.try_acquire_for(limit, stop);
        })) {}
  Waiting(Waiting&&) = default;
  Waiting& operator=(Waiting&&) = default;
  ~Waiting() { stop_.request_stop(); }

  [[nodiscard]] bool over() const {
    return attempt_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  void cancel() { stop_.request_stop(); }
  /// Waits for the end.
  [[nodiscard]] Attempt attempt() { return attempt_.get(); }
  [[nodiscard]] Lease lease() { return attempt_.get().value(); }

 private:
  std::stop_source stop_;
  std::future<Attempt> attempt_;  // its destructor waits for the thread
};

}  // namespace interlock::testing_support
