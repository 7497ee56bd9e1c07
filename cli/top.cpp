// interlock top: which locks are fought over, live.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>

#include "command.hpp"
#include "looks.hpp"
#include "screen.hpp"
#include "show.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Duration;
using interlock::Entry;

/// One lock, as it is now.
struct Line {
  std::string name;
  std::size_t held = 0;
  std::size_t waiting = 0;
  Duration longest_wait{};
  Duration oldest_hold{};
  std::optional<double> changes;  ///< a second; empty: we looked only once
  std::string holder;             ///< the oldest
};

struct Frame {
  std::vector<Line> lines;
  std::size_t held = 0;
  std::size_t waiting = 0;
  Duration longest_wait{};
  Duration oldest_hold{};
  std::optional<double> changes;
};

/// Looks at the store, and remembers who held what for the next look.
class Looker {
 public:
  Looker(StoreView& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  Frame look() {
    const auto snapshot = store_.inspect({.prefix = prefix_});
    const auto now = interlock::BootClock::now();
    const bool first = looked_ == interlock::TimePoint{};
    const double seconds = std::chrono::duration<double>(now - looked_).count();
    looked_ = now;
    const auto before = std::exchange(holders_, {});
    Frame frame;
    double changes = 0;
    for (const auto& state : snapshot.resources) {
      auto line = describe_lock(state);
      if (line.held + line.waiting == 0) continue;
      const auto old = before.find(state.resource);
      const auto came =
          std::count_if(state.holders.begin(), state.holders.end(), [&](const Entry& entry) {
            return !entry.ancestor && (old == before.end() || !old->second.contains(entry.owner));
          });
      if (!first) line.changes = static_cast<double>(came) / seconds;
      changes += static_cast<double>(came);
      frame.held += line.held;
      frame.waiting += line.waiting;
      frame.longest_wait = std::max(frame.longest_wait, line.longest_wait);
      frame.oldest_hold = std::max(frame.oldest_hold, line.oldest_hold);
      frame.lines.push_back(std::move(line));
    }
    if (!first) frame.changes = changes / seconds;
    return frame;
  }

 private:
  Line describe_lock(const interlock::ResourceState& state) {
    Line line;
    line.name = state.resource;
    for (const auto& entry : state.holders) {
      if (entry.ancestor) continue;
      holders_[state.resource].insert(entry.owner);
      if (line.held++ == 0 || entry.age > line.oldest_hold) {
        line.oldest_hold = entry.age;
        line.holder = describe(entry.who);
      }
    }
    for (const auto& entry : state.waiters) {
      if (entry.ancestor) continue;
      ++line.waiting;
      line.longest_wait = std::max(line.longest_wait, entry.age);
    }
    return line;
  }

  StoreView& store_;
  const std::string prefix_;
  std::map<std::string, std::set<interlock::Owner>> holders_;
  interlock::TimePoint looked_{};
};

/// What to sort by: how it is called, and its key.
struct Order {
  const char* name;
  char key;
  bool (*before)(const Line&, const Line&);
};

constexpr std::array kOrders = {
    Order{"waiting", 'w', [](const Line& a, const Line& b) { return a.waiting > b.waiting; }},
    Order{"longest", 'l',
          [](const Line& a, const Line& b) { return a.longest_wait > b.longest_wait; }},
    Order{"oldest", 'o',
          [](const Line& a, const Line& b) { return a.oldest_hold > b.oldest_hold; }},
    Order{"changes", 'c', [](const Line& a, const Line& b) { return a.changes > b.changes; }},
    Order{"name", 'n', [](const Line& a, const Line& b) { return a.name < b.name; }},
};

std::string rate(double changes) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f", changes);
  return text.data();
}

std::string plural(std::size_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string summary(const Frame& frame) {
  auto text = plural(frame.lines.size(), "lock", "locks") + ", " +
              plural(frame.held, "holder", "holders") + ", " + std::to_string(frame.waiting) +
              " waiting";
  if (frame.changes) text += ", " + rate(*frame.changes) + " changes/s";
  if (frame.waiting > 0) text += ", longest wait " + for_people(frame.longest_wait);
  if (frame.held > 0) text += ", oldest holder " + for_people(frame.oldest_hold);
  return text;
}

std::vector<std::string> table(const Frame& frame) {
  std::vector<std::vector<std::string>> rows{{"NAME", "WAITING", "LONGEST", "HELD", "OLDEST"}};
  if (frame.changes) rows.front().emplace_back("CHANGES/S");
  rows.front().emplace_back("HOLDER");
  for (const auto& line : frame.lines) {
    std::vector<std::string> cells{printable(line.name), std::to_string(line.waiting),
                                   line.waiting > 0 ? for_people(line.longest_wait) : "-",
                                   std::to_string(line.held),
                                   line.held > 0 ? for_people(line.oldest_hold) : "-"};
    if (frame.changes) cells.push_back(rate(*line.changes));
    cells.push_back(printable(line.holder));
    rows.push_back(std::move(cells));
  }
  return align(rows);
}

nlohmann::ordered_json to_json(const Frame& frame, const std::string& store) {
  const auto milliseconds = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  };
  auto locks = nlohmann::ordered_json::array();
  for (const auto& line : frame.lines) {
    locks.push_back({{"res", line.name},
                     {"waiting", line.waiting},
                     {"longest_wait_ms", milliseconds(line.longest_wait)},
                     {"held", line.held},
                     {"oldest_hold_ms", milliseconds(line.oldest_hold)},
                     {"holder", line.holder}});
  }
  return {{"store", store},
          {"waiting", frame.waiting},
          {"longest_wait_ms", milliseconds(frame.longest_wait)},
          {"held", frame.held},
          {"oldest_hold_ms", milliseconds(frame.oldest_hold)},
          {"locks", std::move(locks)}};
}

void sort(Frame& frame, const Order& order) {
  std::sort(frame.lines.begin(), frame.lines.end(),
            [](const Line& a, const Line& b) { return a.name < b.name; });
  std::stable_sort(frame.lines.begin(), frame.lines.end(), order.before);
}

std::string keys(const Order& order) {
  std::string text = "sorted by " + std::string(order.name) + "; ";
  for (const auto& each : kOrders) text += std::string(1, each.key) + " " + each.name + ", ";
  return text + "q quits";
}

const Order& order_named(const std::string& name) {
  return *std::find_if(kOrders.begin(), kOrders.end(),
                       [&](const Order& order) { return order.name == name; });
}

int show_live(const std::string& where, Looker& looker, const Order* order, Duration interval,
              const Signals& signals) {
  std::optional<Screen> screen;
  screen.emplace();
  Frame frame;
  Frame seen;  // the look's
  Looks looks([&] { seen = looker.look(); }, interval);
  for (;;) {
    if (looks.take()) frame = std::exchange(seen, {});
    const auto problem = !looks.problem().empty() ? "no answer: " + looks.problem()
                         : looks.answered()       ? ""
                                                  : "looking …";
    sort(frame, *order);
    auto lines = table(frame);
    if (frame.lines.empty()) lines = {problem.empty() ? "nothing is locked" : ""};
    screen->draw(
        {"interlock top  " + where, problem.empty() ? summary(frame) : problem, keys(*order)},
        lines);
    const auto status = looks.pause(screen, signals, [&](char key) {
      for (const auto& each : kOrders) {
        if (each.key == key) order = &each;
      }
    });
    if (!status) continue;
    screen.reset();
    return looks.end(*status);
  }
}

}  // namespace

int top(const Arguments& arguments) {
  std::vector<std::string> given;
  Duration interval = std::chrono::seconds(1);
  std::string by = kOrders.front().name;
  bool once = false;
  bool json = false;
  Parser parser(
      "top [OPTIONS] [PREFIX]",
      "Shows which locks have most waiters, who holds them, and since when; the\n"
      "keys w, l, o, c and n sort by waiters, longest wait, oldest holder, changes and name,\n"
      "and q quits. If the output is not a terminal, it is shown once.",
      "  interlock top\n  interlock top --once --sort oldest billing:\n");
  parser.add_names(given, "Only locks whose names begin with this", "PREFIX");
  add_duration(parser, "--interval", "How often to look (default: 1s)",
               [&](Duration value) { interval = value; });
  std::vector<std::string> names;
  names.reserve(kOrders.size());
  for (const auto& order : kOrders) names.emplace_back(order.name);
  parser.add_option("--sort", by, "By waiting (default), longest, oldest, changes or name")
      ->type_name("KEY")
      ->check(CLI::IsMember(names));
  parser.add_flag("--once", once, "Print the table once, and end");
  parser.add_json(json);
  parser.read(arguments);
  if (given.size() > 1) throw UsageError("only one prefix can be given");

  const bool live = !once && !json && ::isatty(STDOUT_FILENO) == 1;
  std::optional<Signals> signals;
  if (live) signals.emplace();  // before the client's threads
  StoreView store(parser.common);
  Looker looker(store, given.empty() ? "" : given.front());
  const auto& order = order_named(by);
  if (live) return show_live(store.traits().where, looker, &order, interval, *signals);
  auto frame = looker.look();
  sort(frame, order);
  if (json) {
    print_json(to_json(frame, store.traits().where));
    return kOk;
  }
  std::cout << summary(frame) << '\n';
  if (frame.lines.empty()) return kOk;
  for (const auto& line : table(frame)) std::cout << line << '\n';
  return kOk;
}

}  // namespace cli
