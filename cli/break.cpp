// interlock break: takes a lock away from whoever holds it.
#include <syslog.h>
#include <unistd.h>

#include "command.hpp"
#include "show.hpp"
#include "standard_error.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

bool confirmed(const std::string& name) {
  // A question that nobody could see has no answer: what is typed then was meant for something else.
  if (!write_error("Break " + printable(name) + "? [y/N] ")) return false;
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
      "Takes the lock away from its holders. A command under `interlock run` is ended when\n"
      "`interlock run` notices: usually at once, at the latest after a third of the TTL. Until\n"
      "then the old and a new holder may both work, unless what they write to checks the fence.",
      "  interlock break nightly\n  interlock break --yes nightly\n");
  parser.add_names(names, "The lock to break");
  parser.add_flag("-y,--yes", yes, "Don't ask");
  parser.read(arguments);
  if (names.size() != 1) throw UsageError("give the name of one lock: interlock break NAME");
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
      throw UsageError(
          name + ": there is no terminal to ask on; to break the lock without asking, add --yes");
    }
    if (!confirmed(name)) {
      complain(name + ": not broken");
      return kNothing;
    }
  }
  bool any = false;
  for (const auto& entry : holders) {
    if (entry.owner.empty()) {
      complain(name +
               ": the holder is unknown, so only the program that took the lock can release it");
      continue;
    }
    if (store.client()->evict(name, entry.owner)) {
      any = true;
      log_eviction(parser.common.log, "lock \"" + name + "\" was taken away from " +
                                          describe(entry.who) + ", owner " + entry.owner.brief() +
                                          ", which had held it for " + for_people(entry.age));
    } else {
      complain(name + ": " + describe(entry.who) + " has released it meanwhile");
    }
  }
  return any ? kOk : kNothing;
}

}  // namespace cli
