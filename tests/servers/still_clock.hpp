// The wall clock of a server that stands still until the test moves it: no lease ends because the machine is slow.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "interlock/clock.hpp"
#include "torture/shared_number.hpp"

namespace interlock::servers {

/// Of servers that are started under `words()`. Only the wall clock: the server's timers go on.
class StillClock {
 public:
  StillClock() {
    // PostgreSQL runs as a user of its own.
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
    using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
    const auto whole = duration_cast<seconds>(system_clock::now().time_since_epoch());
    now_.set(std::chrono::microseconds(whole).count());
  }

  [[nodiscard]] std::vector<std::string> words() const {
    return {"env", "LD_PRELOAD=" TORTURE_CLOCK_LIBRARY, now_.variable(), "TORTURE_CLOCK_STANDS=1"};
  }
  void advance(Duration by) {
    now_.set(now_.value() + std::chrono::duration_cast<std::chrono::microseconds>(by).count());
  }

 private:
  TemporaryDirectory directory_;
  torture::SharedNumber now_{"TORTURE_CLOCK", directory_.path() / "clock"};
};

}  // namespace interlock::servers
