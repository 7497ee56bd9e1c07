// interlock: the command line. Finds the command, runs it, and turns what went wrong into one line
// and an exit status.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstring>
#include <iostream>

#include "arguments.hpp"
#include "command.hpp"
#include "full_program.hpp"
#include "interlock/config.hpp"
#include "interlock/version.hpp"
#include "secrets.hpp"
#include "terminal.hpp"

namespace {

using cli::Arguments;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr std::array kCommands = {
    Command{"run", "Run a command under a lock", cli::run},
    Command{"acquire", "Take a lock and print a token for it", cli::acquire},
    Command{"extend", "Give a token's lock more time", cli::extend},
    Command{"release", "Give a token's lock back", cli::release},
    Command{"who", "Who holds a lock?", cli::who},
    Command{"list", "All locks, holders and waiters", cli::list},
    Command{"watch", "Holders and waiters, live", cli::watch},
    Command{"top", "The busiest locks, live", cli::top},
    Command{"serve", "Serve metrics for Prometheus", cli::serve},
    Command{"deadlocks", "Workers that wait for each other", cli::deadlocks},
    Command{"break", "Take a lock away from its holder", cli::break_lock},
    Command{"repair", "Repair a damaged file store", cli::repair},
    Command{"schema", "Print the SQL of a PostgreSQL store", cli::schema},
    Command{"config", "Show the settings and where they come from", cli::config},
    Command{"bench", "Measure the speed of the store", cli::bench},
    Command{"simulate", "Put load on a store, and check it", cli::simulate},
};

constexpr const char* kExamples = R"(
Examples:
  interlock run nightly -- ./backup.sh        one at a time, others wait in line
  interlock run -n nightly -- ./backup.sh     or give up at once (exit status 75)
  interlock run -w 10s db --also cache -- make migrate
  interlock run --slots 4 encode -- ffmpeg …  four at a time
  interlock who nightly                       who holds the lock?
  token=$(interlock acquire deploy --ttl 10m) … interlock release "$token"

The store: --url URL, else "url" in --config FILE, else $INTERLOCK_URL, else "url" in the settings file
($INTERLOCK_CONFIG, ./interlock.json), else a directory of this user on this machine. See: interlock config
More: interlock COMMAND --help, man interlock
)";

void show_help() {
  std::cout << "Interlock: one at a time, across processes and machines.\n\n"
               "Usage: interlock [--url URL] [--config FILE] [-v] COMMAND …\n\nCommands:\n";
  for (const auto& command : kCommands) {
    std::cout << "  " << command.name << std::string(11 - std::strlen(command.name), ' ')
              << command.summary << '\n';
  }
  std::cout << kExamples;
}

constexpr std::array<std::string_view, 7> kCommonOptions = {
    "--url", "--config", "--verbose", "--log-level", "--log-format", "--help", "--version"};

std::string option_name(const std::string& word) { return word.substr(0, word.find('=')); }

bool is_common(const std::string& word) {
  return word == "-h" || word == "-v" ||
         std::find(kCommonOptions.begin(), kCommonOptions.end(), option_name(word)) !=
             kCommonOptions.end();
}

std::string_view nearest_option(const std::string& word) {
  return interlock::detail::nearest(option_name(word),
                                    {kCommonOptions.begin(), kCommonOptions.end()});
}

[[noreturn]] void refuse_option(const std::string& word) {
  const auto nearest = nearest_option(word);
  throw cli::UsageError("there is no option " + option_name(word) + " before the command; " +
                        (nearest.empty()
                             ? "for a store there is --url, and each command has its own options: "
                               "see interlock --help"
                             : "did you mean " + std::string(nearest) + "?"));
}

/// `option`: one before it that not every command has, or empty.
const Command& find(const std::string& name, const std::string& option) {
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const Command& command) { return command.name == name; });
  if (found != kCommands.end()) return *found;
  std::vector<std::string_view> known;
  known.reserve(kCommands.size());
  for (const auto& command : kCommands) known.emplace_back(command.name);
  const auto nearest = interlock::detail::nearest(name, known);
  if (!option.empty() && (nearest.empty() || !nearest_option(option).empty()))
    refuse_option(option);
  throw cli::UsageError("there is no command \"" + name + "\"; " +
                        (nearest.empty() ? "see: interlock --help"
                                         : "did you mean \"" + std::string(nearest) + "\"?"));
}

// A store's URL that got to where it does not belong may hold a password, so it is not repeated.
std::string without_urls(std::string message, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto equals = word.starts_with('-') ? word.find('=') : std::string::npos;
    const auto value = equals == std::string::npos ? word : word.substr(equals + 1);
    const auto mark = value.find_first_of("@/");
    if (mark == std::string::npos || value.find(':') > mark) continue;
    const auto slashes = value.find("://");
    const auto shown = slashes == std::string::npos ? "***" : value.substr(0, slashes) + "://***";
    for (auto at = message.find(value); at != std::string::npos;
         at = message.find(value, at + shown.size())) {
      message.replace(at, value.size(), shown);
    }
  }
  return message;
}

// A shell stops its script or loop at Ctrl-C only if the program dies of the signal as well. Elsewhere
// 128+n says it all.
void die_of_ctrl_c(int status) {
  if (status != cli::by_signal(SIGINT) || !cli::open_terminal()) return;
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  std::signal(SIGINT, SIG_DFL);
  ::raise(SIGINT);
  ::sigprocmask(SIG_UNBLOCK, &interrupt, nullptr);
}

int interlock_main(std::vector<std::string> words) {
  // The command is the first word that is neither an option nor the value of one.
  std::size_t at = 0;
  std::string unknown;  // the first option that not every command has
  while (at < words.size() && words[at].starts_with("-") && words[at] != "--") {
    if (words[at] == "--version") {
      std::cout << "interlock " << INTERLOCK_VERSION << '\n'
                << "formats: " << INTERLOCK_FORMATS << '\n';
      return cli::kOk;
    }
    if (unknown.empty() && !is_common(words[at])) unknown = words[at];
    at += cli::takes_value(words[at]) ? 2 : 1;
  }
  if (at < words.size() && words[at] == "help") {
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    if (at < words.size()) words.emplace_back("--help");
  }
  if (at >= words.size()) {
    if (!unknown.empty()) refuse_option(unknown);
    show_help();
    return cli::kOk;
  }
  const Command& command = find(words[at], unknown);
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  Arguments arguments{.before = std::move(words), .after = {}, .separated = false};
  const auto& set_by = *arguments.store_set_by;
  if (command.run == cli::run) {
    auto& before = arguments.before;
    const auto separator = std::find(before.begin(), before.end(), "--");
    if (separator != before.end()) {
      arguments.separated = true;
      arguments.after.assign(separator + 1, before.end());
      before.erase(separator, before.end());
    }
  }
  try {
    return command.run(arguments);
  } catch (const interlock::Error& error) {
    const bool of_store =
        error.errc() == interlock::Errc::unreachable || error.errc() == interlock::Errc::refused;
    if (!of_store || set_by.empty()) throw;
    throw interlock::Error(
        error.errc(), error.message() + "; this store was set by " + set_by,
        {.resource = error.resource(), .node = error.node(), .maybe_held = error.maybe_held()});
  }
}

// What we open must not get the number of a closed stdout, or its text would go there. Reading and
// writing still fails.
void occupy_closed_stdio() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_stdio();
  std::setlocale(LC_CTYPE, "");
  const auto words = cli::arguments_of(argc, argv);
  cli::hide_secrets(argc, argv);
  try {
    const int status = [&] {
      try {
        return interlock_main(words);
      } catch (const cli::NeedsFullProgram&) {
        cli::become_full_program(argv, words);
      }
    }();
    die_of_ctrl_c(status);
    if (!std::cout.flush()) {
      cli::complain("can't write to stdout");
      return status == cli::kOk ? cli::kIo : status;
    }
    return status;
  } catch (const cli::HelpShown&) {
    return cli::kOk;
  } catch (const cli::UsageError& error) {
    cli::complain(without_urls(error.what(), words));
    return cli::kUsage;
  } catch (const cli::Failure& error) {
    cli::complain(error.what());
    return error.status;
  } catch (const interlock::Error& error) {
    cli::complain(error.what());
    return cli::exit_code(error.errc());
  } catch (const std::exception& error) {
    cli::complain(error.what());
    return cli::kSoftware;
  }
}
