// A store around a store that takes the time of each call.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interlock/backend.hpp"
#include "model.hpp"

namespace cli::scale {

struct Readings {
  std::array<std::vector<std::uint32_t>, kSteps> calls{};  ///< in nanoseconds; of each kind a part
  std::uint64_t asked = 0;
  std::uint64_t woken = 0;
};

/// What a Meter writes to. Thread-safe.
class Dial {
 public:
  /// Only what happens from then until then counts.
  void watch(interlock::TimePoint from, interlock::TimePoint until);
  void note(Step step, interlock::Duration time);
  void woken();
  /// All of it.
  Readings take();
  /// Whether this owner asked before.
  bool again(const interlock::Owner& owner);
  void forget(const interlock::Owner& owner);

 private:
  [[nodiscard]] bool counts() const;

  std::mutex mutex_;
  interlock::TimePoint from_ = interlock::TimePoint::max();
  interlock::TimePoint until_ = interlock::TimePoint::max();
  Readings readings_{};
  std::map<interlock::Owner, bool> waiting_{};
};

std::unique_ptr<interlock::Backend> metered(std::unique_ptr<interlock::Backend> inner,
                                            std::shared_ptr<Dial> dial);

}  // namespace cli::scale
