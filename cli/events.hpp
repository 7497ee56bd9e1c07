// What the library tells while it works: shown with --verbose, and what the others here need of it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "descriptor.hpp"
#include "interlock/observer.hpp"

namespace cli {

/// Log lines go to stderr: warnings always, events if `verbose`.
void start_logging(bool verbose);

class Events final : public interlock::Observer {
 public:
  explicit Events(bool verbose) : verbose_(verbose) {}

  void on(const interlock::Observation& seen) noexcept override;

  /// Rung when something happened to a lease or an acquisition.
  [[nodiscard]] const Bell& bell() const { return bell_; }
  /// Whose acquisition is under way.
  [[nodiscard]] std::optional<interlock::Owner> owner() const;
  /// Why the last renewal did not work; empty if it did.
  [[nodiscard]] std::string renewal_problem() const;

 private:
  bool verbose_;
  Bell bell_;
  mutable std::mutex mutex_;
  std::optional<interlock::Owner> owner_;
  std::string problem_;
};

}  // namespace cli
