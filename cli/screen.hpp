// A terminal that is redrawn, for watch and top.
#pragma once

#include <termios.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "interlock/clock.hpp"
#include "signals.hpp"

namespace cli {

/// The terminal without echo and lines, on a screen of its own; as it was when we are done.
class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Titles, an empty line, and as many of the lines as there is room for. If there are several, the
  /// first is a header.
  void draw(const std::vector<std::string>& titles, const std::vector<std::string>& lines) const;

  /// Where keys come from; -1: from nowhere.
  [[nodiscard]] int keys() const { return has_keys_ ? STDIN_FILENO : -1; }

 private:
  termios before_{};
  bool has_keys_ = false;
};

/// Waits for so long; another key than q, a window that changes its size, being continued after Ctrl-Z,
/// and something to read at `also` end it early. An exit status: q, or a signal, says that it is time to end.
std::optional<int> pause(std::optional<Screen>& screen, const Signals& signals,
                         interlock::Duration time, const std::function<void(char)>& on_key = {},
                         int also = -1);

}  // namespace cli
