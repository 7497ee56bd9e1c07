#include "terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string_view>
#include <utility>

#include "process_group.hpp"
#include "signals.hpp"

namespace cli {

namespace {

struct Letter {
  char32_t code;
  std::size_t bytes;
};

constexpr char32_t kBroken = 0xfffd;

// One letter of UTF-8; a byte that is none stands for itself as U+FFFD.
Letter letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {kBroken, 1};
  char32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {kBroken, 1};
    code = (code << 6U) | (byte(i) & 0x3fU);
  }
  return {code, bytes};
}

// Control characters; characters that turn the writing direction around, take no room, or end a line.
bool harmful(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x061c ||
         code == 0x115f || code == 0x1160 || code == 0x180e || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x2069) ||
         code == 0x3164 || code == 0xfeff || code == 0xffa0 || (code >= 0xe0000 && code <= 0xe007f);
}

std::string escaped(char32_t code, const char* format) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(code));
  return text.data();
}

int width_of(char32_t code) {
  const int columns = ::wcwidth(static_cast<wchar_t>(code));
  return columns < 0 ? 1 : columns;
}

}  // namespace

Descriptor open_terminal() { return Descriptor(::open("/dev/tty", O_RDWR | O_CLOEXEC)); }

Terminal::Terminal() {
  if (!in_foreground()) return;
  const auto members = living_members(::getpgrp());
  for_command_ = members.size() == 1 && members.front().pid == ::getpid();
}

// A group of another PID namespace has the number 0 here: the terminal could not be given back to it.
bool Terminal::in_foreground() const { return ::getpgrp() != 0 && is_of(::getpgrp()); }

bool Terminal::is_of(pid_t group) const {
  return terminal_ && ::tcgetpgrp(terminal_.get()) == group;
}

void Terminal::started(pid_t group) { group_ = group; }

Terminal::Next Terminal::stopped(int signal) {
  if (!terminal_ || (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU)) {
    return Next::nothing;
  }
  const bool wants_terminal = signal != SIGTSTP;
  if (!wants_terminal || !in_foreground()) {
    take_back();
    // In a group without a parent in the session, it would be stopped again and again.
    if (!stop_here() && wants_terminal) {
      return std::exchange(hung_up_, true) ? Next::nothing : Next::hang_up;
    }
  }
  if (wants_terminal) for_command_ = true;
  continued();
  return Next::go_on;
}

void Terminal::continued() {
  if (for_command_ && group_ != 0 && in_foreground()) ::tcsetpgrp(terminal_.get(), group_);
}

void Terminal::take_back() const {
  if (lent()) ::tcsetpgrp(terminal_.get(), ::getpgrp());
}

int columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool fancy(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string printable(const std::string& text, int max_columns) {
  std::string result;
  int used = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [code, bytes] = letter(rest);
    std::string shown(rest.substr(0, bytes));
    if (harmful(code)) shown = escaped(code, code < 0x80 ? "\\x%02x" : "\\u%04x");
    if (code == kBroken && bytes == 1) shown = '?';
    const int columns = harmful(code) ? static_cast<int>(shown.size()) : width_of(code);
    if (used + columns > max_columns) break;
    used += columns;
    result += shown;
    rest.remove_prefix(bytes);
  }
  return result;
}

std::string printable_json(const std::string& json) {
  std::string result;
  for (std::string_view rest = json; !rest.empty();) {
    const auto [code, bytes] = letter(rest);
    // Line ends and blanks stand between its parts, and nowhere else.
    if (harmful(code) && code >= 0x7f) {
      result += escaped(code, "\\u%04x");
    } else {
      result += rest.substr(0, bytes);
    }
    rest.remove_prefix(bytes);
  }
  return result;
}

int width(const std::string& text) {
  int columns = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [code, bytes] = letter(rest);
    columns += width_of(code);
    rest.remove_prefix(bytes);
  }
  return columns;
}

}  // namespace cli
