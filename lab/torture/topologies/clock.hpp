// The wall clock of a server, to be set while it runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "torture/topologies/member.hpp"
#include "torture/wall_clock.hpp"

namespace torture {

/// Of programs that are started under `words()`.
class ServerClock {
 public:
  ServerClock() {
    // PostgreSQL runs as a user of its own.
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  }

  [[nodiscard]] std::vector<std::string> words() const {
    return {"env", "LD_PRELOAD=" TORTURE_PRELOAD, clock_.variable()};
  }
  /// In their environment.
  [[nodiscard]] std::string variable() const { return clock_.variable(); }
  /// So much ahead of the right time, in seconds, from now on.
  void set(std::int64_t ahead) {
    const auto before = clock_.set(ahead);
    if (before > ahead)
      caught_up_ = interlock::BootClock::now() + std::chrono::seconds(before - ahead + 1);
  }
  /// Throws if the clock is behind fences that the server may have given: then they are not to be forgotten, since the
  /// store's promise allows them to go back.
  void check_fences_may_be_forgotten() const {
    if (clock_.value() != 0 || interlock::BootClock::now() < caught_up_)
      throw std::runtime_error("the server's clock was set, and fences may be ahead of it");
  }

 private:
  interlock::TemporaryDirectory directory_;
  WallClock clock_{directory_.path() / "clock"};
  interlock::TimePoint caught_up_{};
};

/// Set forward and back again, or back and forward again: either way it steps forward once, which ends leases
/// early. `nature.voids`: this one clock decides.
inline std::vector<Fault> clock_faults(ServerClock& clock, const Nature& nature) {
  constexpr std::int64_t kMost = 15;
  const auto step = [&](std::string name, std::int64_t by) {
    return of_all(
        {.name = std::move(name), .voids = nature.voids, .disturbs = nature.disturbs},
        [&clock, by](Random& random) {
          clock.set(by * (1 + static_cast<std::int64_t>(random() % kMost)));
        },
        [&clock] { clock.set(0); });
  };
  return {step("clock set forward", 1), step("clock set back", -1)};
}

/// Faults that lose data, and with it the last fences.
inline std::vector<Fault> unless_fences_go_back(const ServerClock& clock,
                                                std::vector<Fault> faults) {
  for (auto& fault : faults) {
    fault.begin = [&clock, begin = std::move(fault.begin)](Random& random) {
      clock.check_fences_may_be_forgotten();
      return begin(random);
    };
  }
  return faults;
}

}  // namespace torture
