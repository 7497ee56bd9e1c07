// interlock break: takes a lock away from whoever holds it.
#include <syslog.h>
#include <unistd.h>

#include <iostream>

#include "command.hpp"
#include "show.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

bool confirmed(const std::string& name) {
  std::cerr << "Break " << printable(name) << "? [y/N] " << std::flush;
  const auto answer = line_of_stdin(1024);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::string user() {
  const char* name = ::getlogin();
  return (name != nullptr ? name : "uid " + std::to_string(::getuid()));
}

/// For whoever asks tomorrow what happened to their job.
void log_eviction(const Logging& logging, const std::string& what) {
  log_warning(logging, "evicted", what);
  ::openlog("interlock", LOG_PID, LOG_USER);
  ::syslog(LOG_NOTICE, "%s, by %s", printable(what).c_str(), user().c_str());
  ::closelog();
}

}  // namespace

int break_lock(const Arguments& arguments) {
  std::vector<std::string> names;
  bool yes = false;
  Parser parser(
      "break [OPTIONS] NAME",
      "Takes the lock away from whoever holds it. A command under `interlock run` is ended\n"
      "when it notices: at once as a rule, and a third of its TTL later at most. Until then\n"
      "both may run, unless what they write to checks the fence.",
      "  interlock break nightly\n  interlock break --yes nightly\n");
  parser.add_names(names, "The lock to break");
  parser.add_flag("-y,--yes", yes, "Don't ask");
  parser.read(arguments);
  if (names.size() != 1) throw UsageError("one lock to break: interlock break NAME");
  const auto& name = names.front();
  interlock::check_resource(name);

  StoreView store(parser.common);
  const auto snapshot = store.inspect({.resources = names});
  if (snapshot.resources.empty() || snapshot.resources.front().holders.empty()) {
    complain(name + ": nobody holds it");
    return kNothing;
  }
  const auto& holders = snapshot.resources.front().holders;
  for (const auto& entry : holders) {
    auto text = name + ": held by " + describe(entry.who);
    if (!entry.owner.empty()) text.append(" for ").append(for_people(entry.age));
    complain(text.append(", ").append(time_left(entry)));
  }
  if (!yes) {
    if (::isatty(STDIN_FILENO) != 1) {
      throw UsageError(name + ": to break it without a terminal to ask on, add --yes");
    }
    if (!confirmed(name)) {
      complain(name + ": left as it is");
      return kNothing;
    }
  }
  bool any = false;
  for (const auto& entry : holders) {
    if (entry.owner.empty()) {
      complain(name + ": only the program that took it can give it back");
      continue;
    }
    if (store.client()->evict(name, entry.owner)) {
      any = true;
      log_eviction(parser.common.log, "lock \"" + name + "\" was taken away from " +
                                          describe(entry.who) + ", owner " + entry.owner.brief() +
                                          ", which had held it for " + for_people(entry.age));
    } else {
      complain(name + ": " + describe(entry.who) + " has let go of it by itself");
    }
  }
  return any ? kOk : kNothing;
}

}  // namespace cli
