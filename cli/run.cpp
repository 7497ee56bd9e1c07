// interlock run: takes the lock, runs the command, gives the lock back.
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "command.hpp"
#include "interlock/config.hpp"
#include "interlock/duration.hpp"
#include "secrets.hpp"
#include "supervisor.hpp"
#include "waiting.hpp"

namespace cli {

namespace {

constexpr const char* kExamples =
    "  interlock run nightly -- ./backup.sh\n"
    "  interlock run -n nightly -- ./backup.sh || test $? = 75\n"
    "  interlock run -w 1m30s account:1 --also account:2 -- ./transfer.sh\n"
    "  interlock run --shared config -- ./read-it.sh\n"
    "  interlock run -n --at-least 1m nightly -- ./backup.sh   from cron on several hosts\n"
    "  interlock run --slots 4 encode -- ffmpeg -i in.mkv out.mp4\n"
    "\nExit status: the command's own (128+n if signal n ended it); 75 taken, waited too long or\n"
    "deadlock, 76 the lock was lost and the command ended, 69 no store, 64 usage, 127 no such\n"
    "command.\n";

// From here on, the death of a process does not free the lock. If the answer is lost, asks again as long
// as the lease is valid. False: the lease is lost.
bool untie(interlock::Lease& lease) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  for (;; std::this_thread::sleep_for(kPause)) {
    try {
      return lease.tie_to({});
    } catch (const interlock::Error& error) {
      if (!error.retryable() || !lease) throw;
    }
  }
}

struct Wanted {
  Common common;
  ClaimOptions claim;
  std::vector<std::string> command;
  bool scrub = false;
  std::optional<interlock::Duration> at_least;
};

std::string in_one_line(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

Wanted read(const Arguments& arguments) {
  Wanted wanted;
  Parser parser("run [OPTIONS] NAME… -- COMMAND…",
                "Takes the lock NAME, runs the command, and gives the lock back.", kExamples);
  auto& names = wanted.claim.names;
  parser.add_names(names, "The lock; several names: all of them together, or none");
  add_claim(parser, wanted.claim, std::chrono::seconds(30));
  parser.add_flag("--scrub", wanted.scrub,
                  "Take the store's passwords out of the command's environment");
  add_duration(
      parser, "--at-least",
      "Keep the lock until this long after it was granted, even if the command ends sooner: "
      "for cron on hosts whose clocks differ",
      [&wanted](auto value) { wanted.at_least = checked(value, std::chrono::milliseconds(1)); });
  parser.read(arguments);
  wanted.common = parser.common;
  wanted.command = arguments.after;
  if (wanted.at_least && (wanted.claim.slots > 0 || wanted.claim.shared)) {
    throw UsageError(std::string("--at-least can't be combined with ") +
                     (wanted.claim.shared ? "--shared" : "--slots") +
                     ": the kept lock has to exclude a second run, and a lock that several may "
                     "hold does not");
  }
  if (!arguments.separated) {
    throw UsageError("put -- before the command: interlock run NAME -- COMMAND…");
  }
  auto& command = wanted.command;
  // A name that looks like an option: run -- -name COMMAND…. No command does.
  if (names.empty() && command.size() > 1 && (command[1] == "--" || !command[1].starts_with('-'))) {
    names.push_back(command.front());
    command.erase(command.begin());
    if (command.front() == "--") command.erase(command.begin());
  }
  if (names.empty()) {
    throw UsageError("no name: interlock run NAME -- " +
                     (command.empty() ? "COMMAND…" : in_one_line(command)));
  }
  if (command.empty()) {
    throw UsageError("no command to run: interlock run " + names.front() + " -- COMMAND…");
  }
  wanted.claim.take(parser.common.settings);
  // What keeps the lock after the command is a second lease of the same identity.
  if (wanted.at_least && wanted.claim.identity.empty())
    wanted.claim.identity = interlock::Owner::random().to_string();
  // Commands of one actor may run side by side, so each is a part of what it does.
  if (wanted.claim.inherited) *wanted.claim.actor += ">" + interlock::Owner::random().brief();
  wanted.claim.default_ttl = parser.common.settings.options().ttl;
  if (wanted.claim.label.empty()) {
    wanted.claim.label = std::filesystem::path(command.front()).filename().string();
  }
  return wanted;
}

std::vector<std::string> environment(const Wanted& wanted, const interlock::Client& client,
                                     const interlock::Lease& lease) {
  std::vector<std::string> variables{"INTERLOCK_RESOURCE=" + wanted.claim.names.front(),
                                     "INTERLOCK_OWNER=" + lease.owner().brief()};
  if (client.traits().fences) {
    const auto fence = lease.fence(wanted.claim.names.front());
    variables.push_back("INTERLOCK_FENCE=" + std::to_string(fence.value));
  } else {
    variables.emplace_back("INTERLOCK_FENCE");  // not one of a lock around us
  }
  if (wanted.claim.actor) variables.push_back("INTERLOCK_ACTOR=" + *wanted.claim.actor);
  // The command finds the same store, in whatever directory it works. A password is nothing that its environment
  // should show, unless it had it before.
  const auto store = store_url(wanted.common);
  const auto& file = wanted.common.settings.file();
  bool withheld = has_secret(wanted.common.url);
  if (wanted.scrub) {
    const auto secrets = secret_variables(store);
    variables.insert(variables.end(), secrets.begin(), secrets.end());
    withheld = withheld || !secrets.empty() || has_secret(store);
  }
  const bool by_file =
      wanted.common.settings.explain().front().origin == interlock::SettingOrigin::file;
  std::error_code ignored;
  const bool is_pipe = !file.empty() && !std::filesystem::is_regular_file(file, ignored);
  if (withheld || (by_file && is_pipe && has_secret(store))) {
    variables.push_back("INTERLOCK_URL=" + std::string(interlock::detail::kWithheldStore));
  } else if (!has_secret(store)) {
    variables.push_back("INTERLOCK_URL=" + store);
  } else if (by_file) {
    variables.emplace_back("INTERLOCK_URL");  // it would go before the file
  }
  // A pipe has been read, and has nothing more to say.
  if (!file.empty())
    variables.push_back("INTERLOCK_CONFIG=" + (is_pipe ? "/dev/null" : file.string()));
  return variables;
}

std::string why_lost(const interlock::Lease& lease, const Events& events) {
  auto reason = lease.lost_reason();
  if (reason.empty()) reason = "it could not be renewed in time";
  const auto problem = events.renewal_problem();
  return problem.empty() ? reason : reason + ": " + problem;
}

/// Holds the lock beside the command's own lease, for the rest of --at-least: there is no gap between the two. No
/// process renews it, and none ends it.
std::optional<interlock::Lease> keep(const interlock::Client& client, const Wanted& wanted,
                                     interlock::TimePoint granted) {
  constexpr interlock::Duration kShortest = std::chrono::milliseconds(50);
  if (!wanted.at_least) return {};
  const auto rest = granted + *wanted.at_least - interlock::BootClock::now();
  if (rest <= interlock::Duration::zero()) return {};
  auto options = wanted.claim.options();
  options.ttl = std::max(rest, kShortest);
  options.renew = false;
  options.retry = {};  // and not for as long as --wait says
  options.process = 0;
  auto attempt = client.acquire(wanted.claim.parts(), options, interlock::Wait::once());
  if (attempt) return std::move(*attempt);
  complain(wanted.claim.title() + ": can't be kept for the rest of --at-least (" +
           interlock::format_duration(std::chrono::ceil<std::chrono::seconds>(rest)) +
           "), so it is released now: " + attempt.error().message());
  return {};
}

/// Gives the lock back. True: it had been ours all the time.
bool give_back(interlock::Lease& lease, const std::string& title) {
  try {
    return lease.release() == interlock::LeaseState::released;
  } catch (const interlock::Error& error) {
    complain(title +
             ": could not be released, so it may stay taken for up to its TTL: " + error.message());
    return true;
  }
}

int not_started(const std::string& command, int why) {
  complain(command + ": " + (why == ENOENT ? "command not found" : std::strerror(why)));
  return why == ENOENT ? kNotFound : kNotExecutable;
}

// The command could not be ended, and ended by itself.
std::string unless_ended(const std::string& otherwise, Left left) {
  switch (left) {
    case Left::none:
      break;
    case Left::kept:
      return "; it was kept until the command had ended by itself";
    case Left::lost:
      return "; the command ended only after that";
  }
  return otherwise;
}

int finish(const Ended& ended, interlock::Lease& lease, const Events& events, const Wanted& wanted,
           const std::function<std::optional<interlock::Lease>()>& keep_rest) {
  const auto title = wanted.claim.title();
  if (ended.how == Ended::How::for_the_lease) {
    complain(title + ": the lock was lost (" + why_lost(lease, events) + ")" +
             unless_ended(", so the command was ended", ended.left));
    return kLost;  // what may be left of it goes with the lease
  }
  // Not if the command was ended, or never ran: another host may run it.
  auto rest = ended.how == Ended::How::by_itself ? keep_rest() : std::nullopt;
  const bool was_ours = give_back(lease, title);
  if (rest && was_ours) (void)rest->detach();  // what was taken away from us is not ours to keep
  rest.reset();
  switch (ended.how) {
    case Ended::How::not_started:
      return not_started(wanted.command.front(), ended.value);
    case Ended::How::unguarded:
      complain(title + ": the process that guards the command was killed" +
               (ended.left == Left::none ? ", so the command was, too"
                                         : "; the command ended by itself"));
      return by_signal(SIGKILL);
    case Ended::How::for_the_lease:
    case Ended::How::by_itself:
      break;
  }
  if (!was_ours) {
    complain(title + ": the lock was lost while the command ran (" + why_lost(lease, events) + ")");
    return kLost;
  }
  return WIFSIGNALED(ended.value) ? by_signal(WTERMSIG(ended.value)) : WEXITSTATUS(ended.value);
}

}  // namespace

int run(const Arguments& arguments) {
  const Wanted wanted = read(arguments);
  // The order matters: signals are blocked before any thread starts, the guardian is forked while
  // there is none, and it ends last, when the lock is free again.
  const Signals signals;
  Guardian guardian(wanted.command, signals);
  const auto events = std::make_shared<Events>();
  const auto client = open_store(wanted.common, events);
  if (wanted.at_least && !client.traits().detaches) {
    throw interlock::Error(interlock::Errc::unsupported,
                           "the locks of " + client.traits().where +
                               " end with the process that took them, so --at-least can't keep one "
                               "after the command; use ?mode=lease");
  }
  auto options = wanted.claim.options();
  options.process = guardian.pid();

  auto waited = wait_for_lock(client, wanted.claim, options, *events, signals, &guardian);
  if (!waited.lease) return waited.exit_status;
  auto& lease = *waited.lease;
  const auto granted = interlock::BootClock::now();
  guardian.entrust(store_url(wanted.common), lease.token(), wanted.claim.title());
  if (!untie(lease)) {
    complain(wanted.claim.title() + ": the lock was lost before the command could start");
    return kLost;
  }
  const Ended ended = Supervisor(guardian, lease, *events, signals, wanted.claim.title())
                          .run(environment(wanted, client, lease));
  const int status =
      finish(ended, lease, *events, wanted, [&] { return keep(client, wanted, granted); });
  guardian.dismiss();
  return status;
}

}  // namespace cli
