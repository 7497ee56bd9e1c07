// who and list: what is locked, by whom, and who waits.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "command.hpp"
#include "interlock/multi_lock.hpp"
#include "show.hpp"
#include "standard_error.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

int who(const Arguments& arguments) {
  std::vector<std::string> names;
  bool json = false;
  Parser parser("who [OPTIONS] NAME…",
                "Shows who holds each of the locks. Exit status 1 if nobody holds any of them.",
                "  interlock who nightly\n");
  parser.add_names(names, "The locks to look at");
  parser.add_json(json);
  parser.read(arguments);
  if (names.empty())
    throw UsageError(
        "the name of a lock is missing: interlock who NAME…; interlock list shows all locks");
  for (const auto& name : names) interlock::check_resource(name);
  StoreView store(parser.common);
  const auto snapshot = store.inspect({.resources = names});
  bool held = false;
  for (const auto& state : snapshot.resources) held = held || !state.holders.empty();
  if (json) {
    print_json(to_json(snapshot, store.traits().where));
    return held ? kOk : kNothing;
  }
  for (const auto& name : names) {
    const auto state = std::find_if(snapshot.resources.begin(), snapshot.resources.end(),
                                    [&](const auto& each) { return each.resource == name; });
    if (state == snapshot.resources.end() || state->holders.empty()) {
      const auto* client = store.client();
      const auto above =
          client != nullptr ? in_the_way(*client, {interlock::exclusive(name)}, {}) : std::string();
      std::cout << printable(name) << ": free in " << printable(store.traits().where);
      if (!above.empty()) std::cout << ", but can't be had: " << printable(above);
      std::cout << '\n';
      continue;
    }
    for (const auto& entry : state->holders) {
      std::cout << printable(name) << ": ";
      if (entry.ancestor) {
        std::cout << "something below it is held";
      } else if (entry.mode == interlock::Mode::slots) {
        std::cout << entry.slots << " of " << state->capacity << " held";
      } else {
        std::cout << (entry.mode == interlock::Mode::shared ? "shared" : "held");
      }
      std::cout << " by " << printable(describe(entry.who)) << " for " << for_people(entry.age)
                << ", " << time_left(entry);
      if (!state->waiters.empty()) std::cout << ", " << state->waiters.size() << " waiting";
      std::cout << '\n';
    }
  }
  return held ? kOk : kNothing;
}

int list(const Arguments& arguments) {
  std::vector<std::string> prefix;
  bool json = false;
  bool all = false;
  Parser parser(
      "list [OPTIONS] [PREFIX]",
      "Shows all locks whose name begins with PREFIX: their holders, and their waiters in\n"
      "order.",
      "  interlock list billing:\n  interlock list --json | jq .resources\n");
  parser.add_names(prefix, "Only locks whose names begin with this", "PREFIX");
  parser.add_flag("-a,--all", all,
                  "Also names that are held only for a lock below them, such as a for a/b");
  parser.add_json(json);
  parser.read(arguments);
  if (prefix.size() > 1) throw UsageError("only one prefix can be given");
  StoreView store(parser.common);
  const auto snapshot = store.inspect({.prefix = prefix.empty() ? "" : prefix.front()});
  if (json) {
    print_json(to_json(snapshot, store.traits().where));
    return kOk;
  }
  const auto lines = table(snapshot, all);
  for (const auto& line : lines) std::cout << line << '\n';
  // A script gets an empty stdout, and a job without a terminal no mail.
  if (lines.empty() && ::isatty(STDERR_FILENO) == 1) {
    write_error("nothing " +
                (prefix.empty() ? "" : "that begins with '" + printable(prefix.front()) + "' ") +
                "is held in " + printable(store.traits().where) + "\n");
  }
  return kOk;
}

}  // namespace cli
