#include "options.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "interlock/error.hpp"
#include "interlock/multi_lock.hpp"
#include "tracing.hpp"

namespace cli {

namespace {

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// One place for a user, whether logged in, under cron or in a service. XDG_RUNTIME_DIR is not: it
// comes and goes with the login, and two jobs that look in different places don't exclude each other.
std::string runtime_directory() {
  const char* base = is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  return std::string(base) + "/interlock-" + std::to_string(::getuid());
}

std::string file_url(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string url = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return url;
}

}  // namespace

void add_common(CLI::App& app, Common& common) {
  app.add_option("--url", common.url,
                 "The store (default: $INTERLOCK_URL, else a directory of yours)")
      ->type_name("URL");
  add_logging(app, common.log);
}

std::string store_url(const Common& common) {
  if (!common.url.empty()) return common.url;
  const char* url = std::getenv("INTERLOCK_URL");
  if (url != nullptr && *url != '\0') return url;
  return file_url(runtime_directory());
}

interlock::Client open_store(const Common& common, std::shared_ptr<interlock::Observer> observer) {
  interlock::ClientOptions options;
  options.observer =
      interlock::observers({std::move(observer), make_log(common.log), make_tracing()});
  auto client = interlock::connect(store_url(common), std::move(options));
  if (!client.traits().across_processes) {
    throw interlock::Error(interlock::Errc::invalid,
                           "the store " + client.traits().where +
                               " is seen by one process only, so it can't lock anybody out; use a "
                               "file: URL, or none");
  }
  // The log has them, too.
  if (!common.log.level) {
    for (const auto& warning : client.traits().warnings) complain("warning: " + warning);
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

interlock::Options ClaimOptions::options() const {
  interlock::Options options;
  options.ttl = ttl;
  options.label = label;
  options.identity = identity;
  options.priority = priority;
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
  claim.ttl = default_ttl;
  app.add_option("--also", claim.also, "One more name to lock, all or none; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  auto* shared = app.add_flag("-s,--shared", claim.shared, "Together with others that share it");
  app.add_option("--slots", claim.slots,
                 "At most N at once for NAME; all users have to say the same N")
      ->type_name("N")
      ->check(CLI::Range(1U, std::numeric_limits<std::uint32_t>::max()))
      ->excludes(shared);
  auto* no_wait = app.add_flag("-n,--no-wait", claim.no_wait, "Give up at once if it is taken");
  add_duration(app, "-w,--wait", "Give up after so long (default: wait)", [&claim](auto value) {
    claim.wait = value;
  })->excludes(no_wait);
  add_duration(app, "--ttl",
               "How long the lock outlives us at most (default: " +
                   interlock::format_duration(default_ttl) + ")",
               [&claim](auto value) { claim.ttl = value; });
  app.add_option("--label", claim.label, "What for, to be seen by others")->type_name("TEXT");
  app.add_option("--identity", claim.identity, "Users of one identity don't exclude each other")
      ->type_name("ID");
  app.add_option("--priority", claim.priority, "Higher ones are served first (default: 0)")
      ->type_name("N");
  app.add_flag("-q,--quiet", claim.quiet, "Say nothing if it is taken or the wait was too long");
  app.add_option("-E,--conflict-exit-code", claim.busy_code,
                 "Exit status if it is taken or the wait was too long (default: 75)")
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

}  // namespace cli
