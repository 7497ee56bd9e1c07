#include "interlock/config.hpp"

#include <arpa/inet.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "config/settings_file.hpp"
#include "core/text.hpp"
#include "interlock/duration.hpp"

namespace interlock {

namespace {

constexpr const char* kFileHere = "interlock.json";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Runs it; what is wrong with the value is then said of the place where the value stands.
template <class Read>
auto reading(const std::string& what, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.errc(), (what.empty() ? "" : what + ": ") + error.message());
  }
}

OnUnavailable read_on_unavailable(const std::string& text) {
  if (text == "error") return OnUnavailable::error;
  if (text == "memory") return OnUnavailable::memory;
  throw Error(Errc::invalid, "it is \"error\" or \"memory\", not \"" + printable(text, 40) + "\"");
}

std::string read_log_level(const std::string& text) {
  constexpr std::array levels{"error", "warning", "info", "debug"};
  if (std::find(levels.begin(), levels.end(), text) != levels.end()) return text;
  throw Error(Errc::invalid, "it is \"error\", \"warning\", \"info\" or \"debug\", not \"" +
                                 printable(text, 40) + "\"");
}

Duration checked_ttl(Duration ttl) {
  check_ttl(ttl, "");
  return ttl;
}

Duration checked_max_wait(Duration limit) {
  if (limit > Duration::zero()) return limit;
  throw Error(Errc::invalid,
              "it has to be more than 0s; to wait as long as it takes, leave it out");
}

std::string checked_label(std::string label) {
  check_text("the label", label);
  return label;
}

std::string checked_url(std::string url) {
  (void)Url::parse(url);
  return url;
}

// A URL, or "host:port" of a Redis. It may hold a password, so it is never quoted.
std::string read_url(const std::string& text) {
  constexpr std::array starts{"memory:", "redlock:", "file:", "/", "./", "../", "~/"};
  const bool is_url = text.find("://") != std::string::npos ||
                      std::any_of(starts.begin(), starts.end(),
                                  [&](const char* start) { return text.starts_with(start); });
  if (is_url) return checked_url(text);
  if (text.empty() || text[0] == ':' || text.find_first_of(",;=@/?# ") != std::string::npos) {
    throw Error(Errc::invalid,
                "it has to be a URL, like redis://:password@host:6379/0, or host:port of a Redis");
  }
  return checked_url("redis://" + text);
}

int number(const std::string& text, int most, const std::string& what) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > most) {
    throw Error(Errc::invalid, what + ": '" + printable(text, 40) + "' is not a number up to " +
                                   std::to_string(most));
  }
  return value;
}

/// An IPv6 address as it stands in a URL.
std::string bracketed(std::string_view host, const std::string& said_by) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in6_addr address{};
  if (::inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &address) != 1)
    throw Error(Errc::invalid, said_by + " is '" + printable(host, 60) +
                                   "', but it is the name of a host alone; the port goes into "
                                   "REDIS_PORT");
  return "[" + std::string(host) + "]";
}

/// What the program says, and for the rest REDIS_HOST, REDIS_PORT, REDIS_DB and REDIS_PASSWORD, and
/// which of these did.
std::string redis_url(const RedisPresets& given, std::string& variables) {
  const auto take = [&](const char* name, const std::string& preset) {
    if (!preset.empty()) return preset;
    auto value = variable(name);
    if (!value.empty()) variables += (variables.empty() ? "" : ", ") + std::string(name);
    return value;
  };
  // What is wrong is said of the argument or of the variable, whichever it was.
  const std::string host_is = given.host.empty() ? "REDIS_HOST" : "host";
  const auto text = [](const std::optional<int>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  auto host = take("REDIS_HOST", given.host);
  auto port = take("REDIS_PORT", text(given.port));
  const auto database = take("REDIS_DB", text(given.db));
  const auto password = given.password.empty() ? take("REDIS_PASSWORD", {}) : std::string();
  if (host.empty()) host = "localhost";
  if (host.find_first_of("/@?,# ") != std::string::npos)
    throw Error(Errc::invalid,
                host_is + " is the name of a host; for a URL there is INTERLOCK_URL");
  if (!is_plain_utf8(host))
    throw Error(Errc::invalid, host_is + " has a control character in it, or is not UTF-8: '" +
                                   printable(host, 60) + "'; it is the name of a host");
  if (host.find_first_of(":[]") != std::string::npos) host = bracketed(host, host_is);
  // Kubernetes sets REDIS_PORT=tcp://10.0.0.1:6379 for a service that is called redis.
  if (port.starts_with("tcp://")) port = port.substr(port.rfind(':') + 1);
  auto url = "redis://" +
             (given.password.empty() ? "" : ":" + percent_encode(given.password) + "@") + host;
  if (!port.empty())
    url += ":" + std::to_string(number(port, 65535, given.port ? "port" : "REDIS_PORT"));
  if (!database.empty())
    url += "/" + std::to_string(number(database, 1 << 20, given.db ? "db" : "REDIS_DB"));
  // The store reads it from there: so it is in no URL that somebody might show.
  if (!password.empty()) url += "?password-env=REDIS_PASSWORD";
  return url;
}

/// The URL of a store that is given by its name.
std::string backend_url(const std::string& name, const RedisPresets& redis,
                        const std::string& said_by, const std::string& instead,
                        std::string& variables) {
  if (name == "memory") return "memory:interlock";
  if (name == "file") return user_store_url();
  if (name == "redis") return redis_url(redis, variables);
  throw Error(Errc::invalid, said_by + " is \"memory\", \"file\" or \"redis\", not \"" +
                                 printable(name, 40) + "\"; for other stores, " + instead);
}

std::string truth(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string_view to_string(SettingOrigin origin) noexcept {
  switch (origin) {
    case SettingOrigin::code:
      return "code";
    case SettingOrigin::file:
      return "file";
    case SettingOrigin::environment:
      return "environment";
    case SettingOrigin::standard:
      break;
  }
  return "default";
}

Config Config::load(const Presets& presets) {
  Config config;
  config.take_presets(presets);
  if (presets.file) config.take_file(*presets.file, false);
  config.take_own_variable();
  if (!presets.file) config.take_usual_file();
  config.take_shared_variables();
  return config;
}

void Config::take_usual_file() {
  std::error_code ignored;
  if (const auto named = variable("INTERLOCK_CONFIG"); !named.empty()) {
    take_file(named, false);
  } else if (std::filesystem::exists(std::filesystem::symlink_status(kFileHere, ignored))) {
    take_file(kFileHere, true);
  }
}

void Config::take_presets(const Presets& presets) {
  const auto offer = [](auto& setting, const auto& value, const char* name, const auto& check) {
    if (!value) return;
    setting.offer(reading(name, [&] { return check(*value); }), SettingOrigin::code, "");
  };
  const auto as_is = [](const auto& value) { return value; };
  offer(url_, presets.url, "", checked_url);
  if (presets.backend) {
    std::string variables;
    auto url = backend_url(*presets.backend, presets.redis, "the backend",
                           "give a URL, like postgres://host/database", variables);
    url_.offer(std::move(url), SettingOrigin::code, variables);
  }
  offer(distributed_, presets.enable_distributed_locking, "", as_is);
  offer(on_unavailable_, presets.on_unavailable, "", as_is);
  offer(ttl_, presets.ttl, "ttl", checked_ttl);
  offer(max_wait_, presets.max_wait, "max_wait", checked_max_wait);
  offer(label_, presets.label, "", checked_label);
  offer(deadlock_detection_, presets.deadlock_detection, "", as_is);
  offer(log_level_, presets.log_level, "log_level", read_log_level);
}

void Config::take_file(const std::filesystem::path& path, bool found_here) {
  if (path == "/dev/null") return;
  const auto content = config::read_settings_file(path, found_here);
  skipped_file_ = content.skipped;
  if (!skipped_file_.empty()) return;
  // The order of the keys within a file means nothing.
  const bool named_before = url_.origin != SettingOrigin::standard;
  for (const auto& entry : content.entries) {
    const auto offer = [&](auto& setting, const auto& read) {
      setting.offer(reading(entry.where + ": " + entry.spelling, read), SettingOrigin::file,
                    entry.where);
    };
    const auto text = [&] { return std::get<std::string>(entry.value); };
    const auto yes_or_no = [&] { return std::get<bool>(entry.value); };
    if (entry.key == "url") {
      const bool counts = url_.origin == SettingOrigin::standard;
      offer(url_, [&] {
        auto url = read_url(text());
        if (found_here && counts) config::refuse_local_secrets(url);
        return url;
      });
    }
    if (entry.key == "enableDistributedLocking" && !named_before) offer(distributed_, yes_or_no);
    if (entry.key == "onUnavailable")
      offer(on_unavailable_, [&] { return read_on_unavailable(text()); });
    if (entry.key == "ttl")
      offer(ttl_, [&] { return checked_ttl(config::parse_time_span(text())); });
    if (entry.key == "maxWait")
      offer(max_wait_, [&] { return checked_max_wait(config::parse_time_span(text())); });
    if (entry.key == "label") offer(label_, [&] { return checked_label(text()); });
    if (entry.key == "deadlockDetection") offer(deadlock_detection_, yes_or_no);
    if (entry.key == "logLevel") offer(log_level_, [&] { return read_log_level(text()); });
  }
  file_ = std::filesystem::absolute(path);
}

// A variable that does not count can't be wrong.
void Config::take_own_variable() {
  auto url = variable("INTERLOCK_URL");
  if (url.empty() || url_.origin != SettingOrigin::standard) return;
  reading("INTERLOCK_URL", [&] { return checked_url(url); });
  url_.offer(std::move(url), SettingOrigin::environment, "INTERLOCK_URL");
}

// Other programs read these, too, so they say less than a settings file.
void Config::take_shared_variables() {
  if (url_.origin != SettingOrigin::standard) return;
  std::string variables;
  if (const auto backend = variable("LOCKING_BACKEND"); !backend.empty()) {
    variables = "LOCKING_BACKEND";
    auto url = backend_url(backend, {}, "LOCKING_BACKEND", "set INTERLOCK_URL instead", variables);
    url_.offer(std::move(url), SettingOrigin::environment, variables);
  } else if (!variable("REDIS_HOST").empty()) {
    auto url = redis_url({}, variables);
    url_.offer(std::move(url), SettingOrigin::environment, variables);
  }
}

Options Config::options() const {
  Options options;
  options.ttl = ttl_.value;
  options.max_wait = max_wait_.value;
  options.label = label_.value;
  return options;
}

std::vector<Setting> Config::explain() const {
  std::vector<Setting> all;
  const auto add = [&](const char* key, const auto& setting, std::string value) {
    all.push_back({key, std::move(value), setting.origin, setting.where});
  };
  add("url", url_, url_.value.empty() ? "" : Url::parse(url_.value).to_string());
  add("enableDistributedLocking", distributed_, truth(distributed_.value));
  add("onUnavailable", on_unavailable_,
      on_unavailable_.value == OnUnavailable::memory ? "memory" : "error");
  add("ttl", ttl_, format_duration(ttl_.value));
  add("maxWait", max_wait_, max_wait_.value ? format_duration(*max_wait_.value) : "");
  add("label", label_, label_.value);
  add("deadlockDetection", deadlock_detection_, truth(deadlock_detection_.value));
  add("logLevel", log_level_, log_level_.value);
  return all;
}

std::vector<std::string> Config::warnings() const {
  std::vector<std::string> warnings;
  if (!skipped_file_.empty()) warnings.push_back(skipped_file_);
  if (url_.value.empty() && distributed_.value) {
    warnings.emplace_back(
        "no store is configured, so locks are kept in memory: they hold within this process only, "
        "and several instances don't exclude each other. Set INTERLOCK_URL, or \"url\" in "
        "interlock.json; or \"enableDistributedLocking\": false if one instance is all there is");
  }
  return warnings;
}

}  // namespace interlock
