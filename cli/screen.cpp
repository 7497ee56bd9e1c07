#include "screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <utility>

#include "exit_code.hpp"
#include "terminal.hpp"

namespace cli {

Screen::Screen() {
  has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  std::cout << "\033[?1049h\033[?25l" << std::flush;
}

Screen::~Screen() {
  std::cout << "\033[?25h\033[?1049l" << std::flush;
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::draw(const std::vector<std::string>& titles,
                  const std::vector<std::string>& lines) const {
  winsize size{};
  const int rows =
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
  const int wide = columns(STDOUT_FILENO);
  const bool bold = fancy(STDOUT_FILENO);
  std::string frame = "\033[H";
  int row = 0;
  // No line break after the last row: the terminal would scroll.
  const auto add = [&](const std::string& line, bool header = false) {
    if (row == rows) return;
    if (row++ > 0) frame += "\r\n";
    frame +=
        (header ? "\033[1m" : "") + printable(line, wide) + (header ? "\033[0m" : "") + "\033[K";
  };
  for (const auto& title : titles) add(title);
  add("");
  bool header = bold && lines.size() > 1;
  for (const auto& line : lines) add(line, std::exchange(header, false));
  std::cout << frame << "\033[J" << std::flush;
}

std::optional<int> pause(std::optional<Screen>& screen, const Signals& signals,
                         interlock::Duration time, const std::function<void(char)>& on_key,
                         int also) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  std::array<pollfd, 3> fds{{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                             {.fd = screen ? screen->keys() : -1, .events = POLLIN, .revents = 0},
                             {.fd = also, .events = POLLIN, .revents = 0}}};
  ::poll(fds.data(), fds.size(),
         static_cast<int>(std::clamp<std::int64_t>(milliseconds, 20, 3600000)));
  char key = 0;
  if (fds[1].revents != 0) {
    if (::read(fds[1].fd, &key, 1) != 1 || key == 'q' || key == 'Q') return kOk;
    if (on_key) on_key(key);
  }
  while (const auto signal = signals.next()) {
    if (*signal == SIGINT && screen) return kOk;
    if (asks_to_end(*signal)) return by_signal(*signal);
    if (*signal == SIGTSTP) {
      const bool drawn = screen.has_value();
      screen.reset();
      stop_here();
      if (drawn) screen.emplace();
    }
  }
  return std::nullopt;
}

}  // namespace cli
