// interlock watch: the list, live. On a terminal it is redrawn; elsewhere, one line per change.
#include <unistd.h>

#include <array>
#include <iostream>
#include <map>
#include <utility>

#include "command.hpp"
#include "looks.hpp"
#include "screen.hpp"
#include "show.hpp"
#include "signals.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Duration;

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
      "terminal, prints a line for each change. A store that does not answer is asked again.",
      "  interlock watch\n  interlock watch billing: | tee locks.log\n");
  parser.add_names(given, "Only locks whose names begin with this", "PREFIX");
  add_duration(parser, "--interval", "How often to look (default: 500ms)",
               [&](Duration value) { interval = value; });
  parser.read(arguments);
  if (given.size() > 1) throw UsageError("only one prefix can be given");
  const std::string prefix = given.empty() ? "" : given.front();

  const Signals signals;
  StoreView store(parser.common);
  std::optional<Screen> screen;
  if (::isatty(STDOUT_FILENO) == 1) screen.emplace();
  Changes changes;
  interlock::Snapshot shown;
  interlock::Snapshot seen;  // the look's
  std::string told;          // why the store does not answer
  Looks looks([&] { seen = store.inspect({.prefix = prefix}); }, interval);
  for (;;) {
    const bool fresh = looks.take();
    const auto& problem = looks.problem();
    if (fresh) shown = std::exchange(seen, {});
    if (screen) {
      auto lines = table(shown, false, columns(STDOUT_FILENO));
      if (lines.empty() && looks.answered()) lines.emplace_back("nothing is locked");
      std::vector<std::string> titles{title(prefix, store.traits().where)};
      if (!problem.empty()) titles.push_back("the store does not answer: " + problem);
      screen->draw(titles, lines);
    } else {
      if (told.empty() != problem.empty()) {
        complain(problem.empty() ? "the store answers again"
                                 : "the store does not answer, asking again: " + problem);
        told = problem;
      }
      if (fresh) changes.print(shown);
      if (!std::cout) return looks.end(kIo);
    }
    if (const auto status = looks.pause(screen, signals)) {
      screen.reset();
      return looks.end(*status);
    }
  }
}

}  // namespace cli
