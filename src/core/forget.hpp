// Cleans up after an acquisition or a lease that ended in doubt.
#pragma once

#include <optional>
#include <vector>

#include "core/engine.hpp"

namespace interlock::core {

/// Releases claims in the background, one after the other: each again and again until the store
/// confirms, or until the store must have dropped it by itself. Then `done` is called, once: granted
/// if one of them was held, unknown if one of them never was confirmed. If the store refuses, `done` is
/// called with that answer at once, and it goes on.
class Forget final : public Listener,
                     public Keeper::Task,
                     public std::enable_shared_from_this<Forget> {
 public:
  using Done = std::function<void(const Answer&)>;
  Forget(std::shared_ptr<Engine> engine, std::vector<Claim> claims, Done done);
  /// Puts it into the keeper's care, which starts it if `start` can't.
  void prepare();
  void start();
  void due(TimePoint now) override;
  void wake(const Owner&) override {}
  void leave(TimePoint deadline) noexcept override;

 private:
  void ask(std::size_t which, TimePoint now);
  void answered(std::size_t which, const Answer& answer);
  void end(std::size_t which, const Answer& answer);
  void tell(const Answer& answer);

  const std::shared_ptr<Engine> engine_;
  const std::vector<Claim> claims_;
  const Done done_;
  std::atomic<bool> told_{false};
  const TimePoint until_;
  std::mutex mutex_;  // guards what follows
  int tries_ = 0;
  std::size_t at_ = 0;            // the claim that is being released
  int maybe_done_ = 0;            // calls that may have released it
  std::optional<Answer> so_far_;  // of those before
};

}  // namespace interlock::core
