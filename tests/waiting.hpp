// Somebody who waits for a lock while the test goes on, and what the store says of one who has it.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <set>
#include <stop_token>
#include <string>
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

/// How many wait in the store as a whole: a claim on several resources is one.
inline std::size_t all_who_wait(const Client& client) {
  std::set<Owner> owners;
  for (const auto& state : client.inspect().resources) {
    for (const auto& waiter : state.waiters) owners.insert(waiter.owner);
  }
  return owners.size();
}

/// The resource as a client sees it. Servers may be away, or have been: whoever looks notices it then.
inline ResourceState seen_by(const Client& client, const std::string& name) {
  ResourceState state{.resource = name};
  EXPECT_TRUE(eventually([&] {
    try {
      auto found = client.inspect({.resources = {name}}).resources;
      if (!found.empty()) state = std::move(found.front());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      return false;
    }
  }));
  return state;
}

/// The store's word on a lease, as soon as it can be had.
inline bool still_held(Lease& lease) {
  bool held = false;
  EXPECT_TRUE(eventually([&] {
    try {
      held = lease.extend(lease.ttl());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      return false;
    }
  }));
  return held;
}

}  // namespace interlock::testing_support
