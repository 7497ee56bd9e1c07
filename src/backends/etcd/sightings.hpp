// How long each holder has not been seen to renew.
//
// etcd has no clock that a transaction could ask, so whoever is in line watches: a holder's key that
// was not written for its TTL, counted on *our* clock from when we *first saw* it as it is, is over.
// It was written before we saw it, and its holder counts from before it was written.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "interlock/clock.hpp"

namespace interlock::etcd {

/// Thread-safe.
class Sightings {
 public:
  /// When the key was first seen as it is (`revision`: when it was last written). Revisions can go
  /// back, and then be used again: after a restore from a backup.
  TimePoint see(const std::string& key, std::int64_t revision, std::string_view value,
                TimePoint now);
  /// It is as it was seen last.
  void see_again(const std::string& key, TimePoint now);

 private:
  struct Sighting {
    std::int64_t revision = 0;
    std::size_t value = 0;  ///< a hash
    TimePoint first{};
    TimePoint last{};
  };
  void tidy(TimePoint now);

  std::mutex mutex_;
  std::unordered_map<std::string, Sighting> seen_;
  TimePoint tidy_at_{};
};

}  // namespace interlock::etcd
