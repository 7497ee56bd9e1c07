#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "interlock/error.hpp"
#include "interlock/multi_lock.hpp"
#include "tracing.hpp"
#include "warnings.hpp"

namespace cli {

void add_common(CLI::App& app, Common& common) {
  app.add_option("--url", common.url, "The store (default: as interlock config says)")
      ->type_name("URL")
      ->check([](const std::string& url) {
        return url.empty() ? std::string("the URL is empty; is a variable not set?") : "";
      });
  app.add_option("--config", common.config,
                 "The settings file (default: $INTERLOCK_CONFIG, else ./interlock.json)")
      ->type_name("FILE");
  add_logging(app, common.log);
}

void load_settings(Common& common) {
  interlock::Presets presets;
  if (!common.url.empty()) presets.url = common.url;
  if (common.config && common.config->find("://") != std::string::npos)
    throw UsageError("--config takes the name of a settings file; to name a store, use --url");
  if (common.config && common.config->empty())
    throw UsageError("--config is empty; to read no settings file, give /dev/null");
  if (common.config) presets.file = *common.config;
  common.settings = interlock::Config::load(presets);
  // What the file says, unless the command line did. Errors and warnings are told without a log.
  const auto& level = common.settings.log_level();
  if (common.log.level) return;
  if (level == "debug") common.log.level = interlock::LogLevel::debug;
  if (level == "info") common.log.level = interlock::LogLevel::info;
}

std::string store_url(const Common& common) {
  const auto& settings = common.settings;
  return settings.distributed_locking() && !settings.url().empty() ? settings.url()
                                                                   : interlock::user_store_url();
}

std::string shown_url(const Common& common, const std::string& otherwise) {
  if (!common.settings.distributed_locking()) return otherwise;
  for (const auto& setting : common.settings.explain()) {
    if (setting.key == "url" && !setting.value.empty()) return setting.value;
  }
  return otherwise;
}

interlock::Error of_origin(const interlock::Error& error, const Common& common) {
  const auto where = common.settings.explain().front().where;
  if (error.errc() != interlock::Errc::invalid || !common.url.empty() || where.empty())
    return error;
  return {error.errc(),
          where + ": " + error.message(),
          {.resource = {}, .node = error.node(), .maybe_held = false}};
}

void quiet_grpc() { ::setenv("GRPC_VERBOSITY", "NONE", 0); }

interlock::Client open_any_store(const Common& common,
                                 std::shared_ptr<interlock::Observer> observer) {
  interlock::ClientOptions options;
  quiet_grpc();
  options.observer =
      interlock::observers({std::move(observer), make_log(common.log), make_tracing(common.log)});
  try {
    return interlock::connect(store_url(common), std::move(options));
  } catch (const interlock::Error& error) {
    throw of_origin(error, common);
  }
}

interlock::Client open_store(const Common& common, std::shared_ptr<interlock::Observer> observer) {
  // A log has the warnings, too.
  if (!common.log.level && common.settings.log_level() != "error")
    observer = interlock::observers({std::move(observer), make_warnings()});
  auto client = open_any_store(common, std::move(observer));
  if (!client.traits().across_processes) {
    throw interlock::Error(
        interlock::Errc::invalid,
        "the store " + client.traits().where +
            " exists in one process only, so its locks exclude no other process; "
            "give a file: URL, or no URL");
  }
  return client;
}

std::vector<interlock::Part> ClaimOptions::parts() const {
  std::vector<interlock::Part> parts;
  const auto add = [&](const std::string& name) {
    if (parts.empty() && slots > 0) {
      parts.push_back(interlock::slots(name, 1, slots));
    } else {
      parts.push_back(shared ? interlock::shared(name) : interlock::exclusive(name));
    }
  };
  for (const auto& name : names) add(name);
  for (const auto& name : also) add(name);
  return parts;
}

void ClaimOptions::take(const interlock::Config& settings) {
  const auto options = settings.options();
  if (!no_wait && !wait) wait = options.max_wait;
  if (label.empty()) label = options.label;
  if (const char* around = std::getenv("INTERLOCK_ACTOR"); around != nullptr && !actor) {
    actor = around;
    inherited = !actor->empty();
  }
}

interlock::Options ClaimOptions::options() const {
  interlock::Options options;
  options.ttl = ttl.value_or(default_ttl);
  options.label = label;
  options.identity = identity;
  options.actor = actor.value_or("");
  options.priority = priority;
  // Whoever says how long to wait, means it of a store that does not answer as well.
  if (wait) options.retry.attempts = std::numeric_limits<int>::max();
  return options;
}

interlock::Wait ClaimOptions::how_long() const {
  if (no_wait) return interlock::Wait::once();
  if (wait) return interlock::Wait::for_(*wait);
  return interlock::Wait::forever();
}

std::string ClaimOptions::title() const {
  const auto others = names.size() + also.size() - 1;
  return names.front() + (others == 0 ? "" : " and " + std::to_string(others) + " more");
}

void add_claim(CLI::App& app, ClaimOptions& claim, interlock::Duration default_ttl) {
  claim.default_ttl = default_ttl;
  app.add_option("--also", claim.also,
                 "One more lock, taken together with NAME or not at all; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  auto* shared =
      app.add_flag("-s,--shared", claim.shared, "Share the lock with others that give --shared");
  app.add_option("--slots", claim.slots,
                 "At most N hold NAME at once; all of them have to give the same N")
      ->type_name("N")
      ->check(CLI::Range(1U, std::numeric_limits<std::uint32_t>::max()))
      ->excludes(shared);
  auto* no_wait =
      app.add_flag("-n,--no-wait", claim.no_wait, "Give up at once if the lock is taken");
  add_duration(app, "-w,--wait", "Give up after this time (default: wait as long as it takes)",
               [&claim](auto value) { claim.wait = value; })
      ->excludes(no_wait);
  add_duration(app, "--ttl",
               "How long the lock lives without a renewal (default: " +
                   interlock::format_duration(default_ttl) + ")",
               [&claim](auto value) { claim.ttl = value; });
  app.add_option("--label", claim.label, "What the lock is for; who and list show it")
      ->type_name("TEXT");
  app.add_option("--identity", claim.identity,
                 "Holders of the same identity don't exclude each other")
      ->type_name("ID");
  app.add_option(
         "--actor", claim.actor,
         "The name of a sequential worker, for finding deadlocks (default: $INTERLOCK_ACTOR)")
      ->type_name("ID");
  app.add_option("--priority", claim.priority,
                 "Waiters of higher priority get the lock first (default: 0)")
      ->type_name("N");
  app.add_flag("-q,--quiet", claim.quiet,
               "Print nothing if the lock is taken or the wait was too long");
  app.add_option("-E,--conflict-exit-code", claim.busy_code,
                 "Exit status if the lock is taken or the wait was too long (default: 75)")
      ->type_name("CODE")
      ->check(CLI::Range(0, 255));
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& what,
                          std::function<void(interlock::Duration)> then) {
  const auto read = [name, then = std::move(then)](const std::string& text) {
    try {
      then(interlock::parse_duration(text));
    } catch (const interlock::Error& error) {
      throw CLI::ValidationError(name, error.message());
    }
  };
  return app.add_option_function<std::string>(name, read, what)->type_name("TIME");
}

interlock::Duration checked(interlock::Duration value, interlock::Duration least) {
  if (value >= least && value <= std::chrono::hours(24 * 365)) return value;
  throw interlock::Error(interlock::Errc::invalid,
                         interlock::format_duration(value) + " is out of range: " +
                             interlock::format_duration(least) + " to a year");
}

CLI::Option* add_work_time(CLI::App& app, const std::string& what, interlock::Duration& value) {
  return add_duration(app, "--duration", what, [&value](auto given) {
    value = checked(given, std::chrono::milliseconds(1));
  });
}

CLI::Option* add_seed(CLI::App& app, const std::string& what,
                      std::function<void(std::uint64_t)> then) {
  const auto read = [then = std::move(then)](const std::string& text) {
    std::uint64_t seed = 0;
    const auto* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, seed);
    if (error != std::errc{} || stopped != end)
      throw CLI::ValidationError("--seed", "'" + text + "' is not a whole number from 0 to " +
                                               std::to_string(~std::uint64_t{0}));
    then(seed);
  };
  return app.add_option_function<std::string>("--seed", read, what)->type_name("N");
}

}  // namespace cli
