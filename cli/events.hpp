// What the library tells while it works, as far as the others here need it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "descriptor.hpp"
#include "interlock/observer.hpp"

namespace cli {

class Events final : public interlock::Observer {
 public:
  void on(const interlock::Observation& seen) noexcept override;

  /// Rung when something happened to a lease or an acquisition.
  [[nodiscard]] const Bell& bell() const { return bell_; }
  /// Whose acquisition is under way.
  [[nodiscard]] std::optional<interlock::Owner> owner() const;
  /// Why the last renewal did not work; empty if it did.
  [[nodiscard]] std::string renewal_problem() const;
  /// Why the store is out of reach; empty if it isn't.
  [[nodiscard]] std::string store_problem() const;

 private:
  Bell bell_;
  mutable std::mutex mutex_;
  std::optional<interlock::Owner> owner_;
  std::string problem_;
  std::string store_problem_;
};

}  // namespace cli
