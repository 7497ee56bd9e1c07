// interlock watch: the list, live. On a terminal it is redrawn; elsewhere, one line per change.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <map>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "show.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Duration;

/// The terminal without echo and lines, on a screen of its own; as it was when we are done.
class Screen {
 public:
  Screen() {
    has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    std::cout << "\033[?1049h\033[?25l" << std::flush;
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    std::cout << "\033[?25h\033[?1049l" << std::flush;
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  void draw(const std::string& title, const std::vector<std::string>& lines) const {
    winsize size{};
    const int rows =
        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
    const int wide = columns(STDOUT_FILENO);
    const bool bold = fancy(STDOUT_FILENO);
    std::string frame = "\033[H" + printable(title, wide) + "\033[K\r\n\033[K\r\n";
    int row = 2;
    for (const auto& line : lines) {
      if (++row > rows) break;
      const bool header = bold && row == 3 && lines.size() > 1;
      frame +=
          (header ? "\033[1m" : "") + printable(line, wide) + (header ? "\033[0m" : "") + "\033[K";
      if (row < rows) frame += "\r\n";
    }
    std::cout << frame << "\033[J" << std::flush;
  }

  /// -1: none.
  [[nodiscard]] int keys() const { return has_keys_ ? STDIN_FILENO : -1; }

 private:
  termios before_{};
  bool has_keys_ = false;
};

/// Who held or waited when we last looked.
class Changes {
 public:
  void print(const interlock::Snapshot& snapshot) {
    std::map<Key, Seen> now;
    for (const auto& state : snapshot.resources) {
      for (const auto& entry : state.holders) note(now, state, entry, true);
      for (const auto& entry : state.waiters) note(now, state, entry, false);
    }
    for (const auto& [key, seen] : before_) {
      if (!now.contains(key)) line(key, seen, seen.holds ? "no longer held" : "no longer waiting");
    }
    for (const auto& [key, seen] : now) {
      const auto old = before_.find(key);
      if (old == before_.end() || old->second.holds != seen.holds) {
        line(key, seen, seen.holds ? "held" : "waiting");
      }
    }
    std::cout << std::flush;
    before_ = std::move(now);
  }

 private:
  using Key = std::pair<std::string, interlock::Owner>;
  struct Seen {
    bool holds;
    std::string who;
  };

  static void note(std::map<Key, Seen>& now, const interlock::ResourceState& state,
                   const interlock::Entry& entry, bool holds) {
    if (!entry.ancestor) now[{state.resource, entry.owner}] = {holds, describe(entry.who)};
  }

  static void line(const Key& key, const Seen& seen, const char* what) {
    std::array<char, 16> clock{};
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::strftime(clock.data(), clock.size(), "%H:%M:%S", &local);
    std::cout << clock.data() << ' ' << printable(key.first) << ' ' << what << ' '
              << (std::string_view(what).ends_with("held") ? "by " : "") << printable(seen.who)
              << '\n';
  }

  std::map<Key, Seen> before_;
};

std::string title(const std::string& prefix, const std::string& where) {
  return "interlock watch" + (prefix.empty() ? "" : " " + prefix) + "  " + where + "  (q quits)";
}

}  // namespace

int watch(const Arguments& arguments) {
  std::vector<std::string> given;
  Duration interval = std::chrono::milliseconds(500);
  Parser parser(
      "watch [OPTIONS] [PREFIX]",
      "Shows the locks whose name begins with PREFIX, live; q quits. If the output is not a\n"
      "terminal, prints a line for each change.",
      "  interlock watch\n  interlock watch billing: | tee locks.log\n");
  parser.add_names(given, "Only names that begin with it", "PREFIX");
  add_duration(parser, "--interval", "How often to look (default: 500ms)",
               [&](Duration value) { interval = value; });
  parser.read(arguments.before);
  if (given.size() > 1) throw UsageError("only one prefix can be given");
  const std::string prefix = given.empty() ? "" : given.front();
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(interval).count();

  const Signals signals;
  const auto client = open_store(parser.common);
  std::optional<Screen> screen;
  if (::isatty(STDOUT_FILENO) == 1) screen.emplace();
  Changes changes;
  for (;;) {
    const auto snapshot = client.inspect({.prefix = prefix});
    if (screen) {
      auto lines = table(snapshot, false);
      if (lines.empty()) lines.emplace_back("nothing is locked");
      screen->draw(title(prefix, client.traits().where), lines);
    } else {
      changes.print(snapshot);
      if (!std::cout) return kIo;
    }
    std::array<pollfd, 2> fds{
        {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
         {.fd = screen ? screen->keys() : -1, .events = POLLIN, .revents = 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(pause, 20, 3600000)));
    char key = 0;
    if ((fds[1].revents & POLLIN) != 0 && ::read(fds[1].fd, &key, 1) == 1 &&
        (key == 'q' || key == 'Q')) {
      return kOk;
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
  }
}

}  // namespace cli
