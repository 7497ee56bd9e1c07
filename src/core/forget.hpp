// Cleans up after an acquisition or a lease that ended in doubt.
#pragma once

#include "core/engine.hpp"

namespace interlock::core {

/// Releases a claim in the background: again and again until the store confirms, or until the store
/// must have dropped the claim by itself. Then `done` is called, once, with the last answer; or earlier, with
/// the first answer that refuses it.
class Forget final : public Listener,
                     public Keeper::Task,
                     public std::enable_shared_from_this<Forget> {
 public:
  using Done = std::function<void(const Answer&)>;
  Forget(std::shared_ptr<Engine> engine, Claim claim, Done done);
  void start();
  void due(TimePoint now) override;
  void wake(const Owner&) override {}
  void leave(TimePoint deadline) noexcept override;

 private:
  void answered(const Answer& answer);
  void end(const Answer& answer);
  void tell(const Answer& answer);

  const std::shared_ptr<Engine> engine_;
  const Claim claim_;
  const Done done_;
  std::atomic<bool> told_{false};
  const TimePoint until_;
  std::atomic<int> tries_{0};
};

}  // namespace interlock::core
