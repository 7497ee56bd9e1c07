// Settings from outside of the program: which store, and what its locks are like.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/backend.hpp"
#include "interlock/client.hpp"

namespace interlock {

/// What to do if the store that is configured can't be reached when the program connects.
enum class OnUnavailable {
  error,   ///< throw Error (unreachable)
  memory,  ///< go on in memory, with a warning: the locks then hold within this process only
};

/// Whose word a setting is, the first one that has something to say.
enum class SettingOrigin {
  code,         ///< Presets
  file,         ///< the settings file
  environment,  ///< INTERLOCK_URL, LOCKING_BACKEND, REDIS_HOST, …
  standard,     ///< nobody said anything: the default
};

std::string_view to_string(SettingOrigin origin) noexcept;

/// Where a Redis is, for a backend of "redis". What is empty is taken from REDIS_HOST, REDIS_PORT, REDIS_DB
/// and REDIS_PASSWORD, each for itself.
struct RedisPresets {
  std::string host{};
  std::optional<int> port{};
  std::optional<int> db{};
  std::string password{};
};

/// What the program itself decides. It goes before the environment and the usual settings file.
struct Presets {
  /// The settings file, instead of $INTERLOCK_CONFIG and ./interlock.json. It has to be there;
  /// "/dev/null": none.
  std::optional<std::filesystem::path> file{};
  std::optional<std::string> url{};  ///< the store
  /// "memory", "file" or "redis", as LOCKING_BACKEND; `url` goes first.
  std::optional<std::string> backend{};
  RedisPresets redis{};  ///< for `backend` = "redis"
  std::optional<bool> enable_distributed_locking{};
  std::optional<OnUnavailable> on_unavailable{};
  std::optional<Duration> ttl{};
  std::optional<Duration> max_wait{};
  std::optional<std::string> label{};
  std::optional<bool> deadlock_detection{};
  std::optional<std::string> log_level{};
};

/// One setting, for people.
struct Setting {
  std::string key{};    ///< as in the file
  std::string value{};  ///< secrets are masked; empty: not set
  SettingOrigin origin = SettingOrigin::standard;
  std::string where{};  ///< "/srv/app/interlock.json:3", "REDIS_HOST"; may be empty
};

namespace detail {

/// A value, and whose word it is.
template <class Value>
struct Sourced {
  Value value{};
  SettingOrigin origin = SettingOrigin::standard;
  std::string where{};

  /// Takes what is offered, unless somebody more important has spoken.
  void offer(Value offered, SettingOrigin from, std::string said_where) {
    if (origin != SettingOrigin::standard) return;
    value = std::move(offered);
    origin = from;
    where = std::move(said_where);
  }
};

/// INTERLOCK_URL of a command under `interlock run` that is not to have the URL of the store. `connect` refuses
/// it, so that nobody locks in another store by mistake.
inline constexpr std::string_view kWithheldStore = "withheld:";

/// The one of these that a misspelt word may have meant, upper and lower case alike; empty: none.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// For a URL whose scheme none of these stores has: which there are, and what was meant or is to be linked.
Error no_store(const Url& url, const std::vector<StoreEntry>& stores);

/// Throws Error (refused) where `connect` would refuse user_store_url(), and makes nothing.
void check_user_store();

}  // namespace detail

/// All settings, put together. For each setting, the first of these that names it decides: the program
/// (Presets, and the file that they name), INTERLOCK_URL, the settings file, the variables that other
/// programs read as well (LOCKING_BACKEND, REDIS_HOST, …), the default. A file's enableDistributedLocking does
/// not count if the store is named before that file.
///
///     const auto settings = Config::load();
///     const auto locks = connect(settings);
///     Mutex report(locks, "report", settings.options());
///
/// docs/settings.md has all keys of the file and all variables; `interlock config` shows what is in
/// force.
class Config {
 public:
  /// The defaults.
  Config() = default;

  /// Reads file and environment now; later changes don't count. Throws Error (invalid) that names
  /// the file and the line: for a key it does not know it suggests the nearest one.
  static Config load(const Presets& presets = {});

  /// The store, with its password if it has one: not for people, see explain(). Empty: none is
  /// configured.
  [[nodiscard]] const std::string& url() const noexcept { return url_.value; }
  /// False: the locks are this process's own, whatever url() says.
  [[nodiscard]] bool distributed_locking() const noexcept { return distributed_.value; }
  [[nodiscard]] OnUnavailable on_unavailable() const noexcept { return on_unavailable_.value; }
  /// For locks: with the ttl, max_wait and label that are configured.
  [[nodiscard]] Options options() const;
  [[nodiscard]] bool deadlock_detection() const noexcept { return deadlock_detection_.value; }
  /// "error", "warning", "info" or "debug".
  [[nodiscard]] const std::string& log_level() const noexcept { return log_level_.value; }

  /// The file that was read; empty: none.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  /// Why an interlock.json in the current directory was not read: it belongs to somebody else. Empty: none was left out.
  [[nodiscard]] const std::string& skipped_file() const noexcept { return skipped_file_; }
  /// Every setting, its value without secrets, and whose word it is.
  [[nodiscard]] std::vector<Setting> explain() const;
  /// What about these settings is risky, in words. connect() adds them to Traits::warnings.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  void take_presets(const Presets& presets);
  void take_file(const std::filesystem::path& path, bool found_here);
  void take_own_variable();
  void take_usual_file();
  void take_shared_variables();

  detail::Sourced<std::string> url_{};
  detail::Sourced<bool> distributed_{.value = true};
  detail::Sourced<OnUnavailable> on_unavailable_{};
  detail::Sourced<Duration> ttl_{.value = Options{}.ttl};
  detail::Sourced<std::optional<Duration>> max_wait_{};
  detail::Sourced<std::string> label_{};
  detail::Sourced<bool> deadlock_detection_{.value = true};
  detail::Sourced<std::string> log_level_{.value = "warning"};
  std::filesystem::path file_{};
  std::string skipped_file_{};
};

/// Opens the store that is configured, and asks it something, so that a store out of reach is noticed
/// here: Error (unreachable), or memory if OnUnavailable says so. That is decided once; a store that
/// fails later is never replaced.
///
/// Nothing configured, or distributed locking switched off: one store in memory for the whole process.
/// If that may be a surprise there is a warning: Traits::warnings has it, and the observer gets
/// Event::warned. Switched off on purpose is no surprise.
Client connect(const Config& config, ClientOptions options = {});

/// The file store that the command uses if nothing is configured, and that LOCKING_BACKEND=file means:
/// one for each user of this machine, that outlives a logout and is the same under cron, in a service,
/// with and without HOME. It is interlock-UID in
///  - /dev/shm, for root and the users of the system, whose ids are below 1000;
///  - /var/tmp, for all others, since systemd-logind empties their /dev/shm when they log out.
/// (Or in the next of /dev/shm, /var/tmp and /tmp, if there is no such directory.) `connect` refuses a
/// /var/tmp that is private to this process (PrivateTmp= in systemd), and it refuses while locks are
/// held in a /dev/shm/interlock-UID, where earlier builds kept those of all users.
std::string user_store_url();

}  // namespace interlock
