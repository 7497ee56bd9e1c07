#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "standard_error.hpp"
#include "terminal.hpp"

namespace cli {

Progress::Progress() : shown_here_(fancy(STDERR_FILENO)) {}

void Progress::show(double part, const std::string& what) {
  const auto now = interlock::BootClock::now();
  if (!shown_here_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  shown_ = true;
  part = std::clamp(part, 0.0, 1.0);
  constexpr int kColumns = 30;
  const auto done = static_cast<std::size_t>(std::lround(part * kColumns));
  const auto line = "[" + std::string(done, '=') + std::string(kColumns - done, ' ') + "] " +
                    std::to_string(std::lround(part * 100)) + "% " + what;
  write_error("\r" + printable(line, columns(STDERR_FILENO) - 1) + "\033[K");
}

void Progress::clear() {
  if (std::exchange(shown_, false)) write_error("\r\033[K");
}

}  // namespace cli
