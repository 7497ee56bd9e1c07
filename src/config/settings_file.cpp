#include "config/settings_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/read_file.hpp"
#include "core/settings.hpp"
#include "core/text.hpp"
#include "interlock/backend.hpp"
#include "interlock/config.hpp"
#include "interlock/duration.hpp"
#include "interlock/error.hpp"

namespace interlock::config {

namespace {

using nlohmann::json;

enum class Type { truth, text };

/// A name that may stand in the file, and our name for what it sets.
struct Name {
  std::string_view spelling;
  std::string_view key;
  Type type;
};

constexpr std::array kNames{
    Name{"url", "url", Type::text},
    Name{"connectionString", "url", Type::text},
    Name{"enableDistributedLocking", "enableDistributedLocking", Type::truth},
    Name{"onUnavailable", "onUnavailable", Type::text},
    Name{"ttl", "ttl", Type::text},
    Name{"distributedLockExpiry", "ttl", Type::text},
    Name{"maxWait", "maxWait", Type::text},
    Name{"distributedLockTimeout", "maxWait", Type::text},
    Name{"label", "label", Type::text},
    Name{"deadlockDetection", "deadlockDetection", Type::truth},
    Name{"logLevel", "logLevel", Type::text},
};

// The one section: {"ConnectionStrings": {"Redis": "localhost:6379"}}.
constexpr std::string_view kSection = "ConnectionStrings";
constexpr std::size_t kMostBytes = 1U << 20U;
// Two levels are ours. What other programs keep beside ConnectionStrings.Redis may have some more.
constexpr int kDeepest = 16;
constexpr Name kRedis{"Redis", "url", Type::text};

// The settings of a raster cache, in the file of its program:
// {"honua": {"rasterCache": {"enableDistributedLocking": true}}}. Where the section is there, what it
// leaves out has the defaults of that cache.
constexpr std::string_view kProgram = "honua";
constexpr std::string_view kCache = "rasterCache";
constexpr std::array<std::string_view, 3> kCacheNames{
    "enableDistributedLocking", "distributedLockTimeout", "distributedLockExpiry"};
struct CacheDefault {
  std::string_view spelling;
  std::string_view key;
  std::string_view value;
};
constexpr std::array kCacheDefaults{CacheDefault{"distributedLockTimeout", "maxWait", "00:05:00"},
                                    CacheDefault{"distributedLockExpiry", "ttl", "00:10:00"}};

// A name, for errors. With an @ it may be a URL with a password, in the wrong place.
std::string shown(std::string_view name) {
  return "\"" + (name.find('@') == name.npos ? printable(name, 60) : "***") + "\"";
}

std::string suggestion(std::string_view unknown, const std::vector<std::string_view>& known) {
  if (const auto nearest = detail::nearest(unknown, known); !nearest.empty())
    return "did you mean \"" + std::string(nearest) + "\"?";
  std::string all;
  for (const auto name : known) all += (all.empty() ? "" : ", ") + std::string(name);
  return "there is " + all;
}

/// Walks over the text and counts the lines, so that a key can be found again.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_++ == '\n') ++*line_;
    return *this;
  }
  LineCounter operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }
  bool operator!=(const LineCounter& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Somebody else may have put the file into the current directory.
struct Stranger {
  std::string why;
};

// Everybody may make a hard link to a file of ours there (unless fs.protected_hardlinks forbids it).
bool others_may_put_files_here() {
  struct stat here {};
  return ::stat(".", &here) != 0 || (here.st_uid != ::geteuid() && here.st_uid != 0) ||
         (here.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

// Options whose value names a secret of this machine, in the URL of any store.
constexpr std::array<std::string_view, 11> kLocalSecrets{"password-file",
                                                         "password-env",
                                                         "sentinel-password-file",
                                                         "sentinel-password-env",
                                                         "cert",
                                                         "key",
                                                         "sslcert",
                                                         "sslkey",
                                                         "sslpassword",
                                                         "passfile",
                                                         "service"};

[[noreturn]] void refuse_secret(const std::string& which) {
  throw Error(Errc::invalid,
              which +
                  " would give a secret of this machine to a server that this file chose, and the "
                  "file was only found in "
                  "the current directory; if it is meant, name it: INTERLOCK_CONFIG=" +
                  std::filesystem::absolute("interlock.json").string());
}

class Reader {
 public:
  Reader(const std::filesystem::path& path, bool found_here)
      : path_(std::filesystem::absolute(path).string()), found_here_(found_here) {}

  SettingsFile read() try {
    const auto root = parse(text());
    if (!root.is_object()) refuse(1, "it has to be one JSON object, like {\"url\": \"redis://…\"}");
    for (const auto& [name, value] : root.items()) {
      if (name == kSection) {
        section(value);
      } else if (name == kProgram) {
        program(value);
      } else {
        take(name, value);
      }
    }
    add_cache_defaults();
    return {.entries = std::move(entries_)};
  } catch (const Stranger& stranger) {
    return {.skipped = printable(path_, 400) +
                       " was not read: it was only found in the current directory, and " +
                       stranger.why + "; if it is meant, name it (INTERLOCK_CONFIG), and if not, " +
                       "INTERLOCK_CONFIG=/dev/null ends this warning"};
  }

 private:
  [[noreturn]] void refuse(int line, const std::string& why) const {
    refuse_as_it_is(line, why + (found_here_ ? " (this file was read because it is in the current "
                                               "directory; if it is not meant for Interlock, set "
                                               "INTERLOCK_CONFIG=/dev/null, or to the file that is)"
                                             : ""));
  }

  [[noreturn]] void refuse_as_it_is(int line, const std::string& why) const {
    std::string message = printable(path_, 400);
    if (line > 0) message += ":" + std::to_string(line);
    throw Error(Errc::invalid, message + ": " + why);
  }

  // A device never ends. A pipe does if somebody means it, as in --config <(…).
  void check_kind(int descriptor) const {
    struct stat info {};
    if (::fstat(descriptor, &info) != 0 || S_ISREG(info.st_mode)) return;
    if (!found_here_ && S_ISFIFO(info.st_mode)) return;
    refuse(0, "the settings file is not a regular file");
  }

  // Others must neither choose our store nor stop us by a file in a directory that we happen to be in.
  void check_owner(const struct stat& info) const {
    if (info.st_uid != ::geteuid() && info.st_uid != 0)
      throw Stranger{"it belongs to user " + std::to_string(info.st_uid)};
    if (S_ISREG(info.st_mode) && info.st_nlink > 1 && others_may_put_files_here())
      throw Stranger{
          "others may have linked it there: it has several names (hard links), and they can write "
          "to this directory"};
    if (S_ISLNK(info.st_mode))
      refuse_as_it_is(0,
                      "this settings file is in the current directory and is a symbolic link, so "
                      "it was not read; " +
                          named_instead());
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      refuse_as_it_is(0,
                      "this settings file is in the current directory, and others than its owner "
                      "can write to it, so it "
                      "was not read; take that right away (chmod go-w), or " +
                          named_instead());
  }

  [[nodiscard]] std::string named_instead() const {
    return "name the file that is meant (--config, INTERLOCK_CONFIG=" + printable(path_, 400) +
           "), or none: INTERLOCK_CONFIG=/dev/null";
  }

  void check(int descriptor) const {
    struct stat info {};
    if (found_here_) {
      if (::fstat(descriptor, &info) != 0) refuse(0, "the settings file can't be looked at");
      check_owner(info);
    }
    check_kind(descriptor);
  }

  std::string text() const {
    std::optional<std::string> content;
    try {
      content = core::read_file(
          path_, [this](int descriptor) { check(descriptor); }, kMostBytes,
          found_here_ ? core::Links::refused : core::Links::followed);
    } catch (const Error&) {
      throw;
    } catch (const std::system_error& error) {
      // It could not be opened: a link, or nothing that we may read. Whose it is decides here, too.
      struct stat info {};
      if (found_here_ && ::lstat(path_.c_str(), &info) == 0) check_owner(info);
      if (error.code() == std::errc::file_too_large)
        refuse(0, "the settings file has more than 1 MiB, so it can't be one");
      refuse(0, "the settings file can't be read: " + error.code().message());
    }
    if (!content) refuse(0, "there is no such settings file");
    return *content;
  }

  // What the parser itself says may quote the file, and that may hold a password.
  json parse(const std::string& content) {
    int line = 1;
    std::string outer;
    std::string inner;
    const auto note_key = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > kDeepest) refuse(line, "it is nested too deep");
      if (event != json::parse_event_t::key) return true;
      const auto name = parsed.get<std::string>();
      if (depth == 1) outer = name;
      if (depth <= 2) inner = depth == 2 ? name : "";
      const bool first = depth == 1   ? lines_.emplace(name, line).second
                         : depth == 2 ? lines_.emplace(outer + "/" + name, line).second
                         : depth == 3 && outer == kProgram && inner == kCache
                             ? lines_.emplace(outer + "/" + inner + "/" + name, line).second
                             : true;
      if (!first) refuse(line, shown(name) + " is there twice; keep one");
      return true;
    };
    try {
      return json::parse(LineCounter(content.data(), &line),
                         LineCounter(content.data() + content.size(), &line), note_key, true, true);
    } catch (const json::exception&) {
      refuse(line,
             "this is not JSON, from here or a little before on: a comma, a quote or a bracket is "
             "missing, or one too many");
    }
  }

  void section(const json& value) {
    if (!value.is_object())
      refuse(lines_.at(std::string(kSection)),
             "ConnectionStrings is a section: {\"Redis\": \"localhost:6379\"}");
    // Other names are those of other programs, unless they look like ours, or ours is not there.
    const bool ours = value.contains(kRedis.spelling);
    for (const auto& [name, inner] : value.items()) {
      const int line = lines_.at(std::string(kSection) + "/" + name);
      if (name == kRedis.spelling) {
        add(kRedis, inner, line);
      } else if (!ours || !detail::nearest(name, {kRedis.spelling}).empty()) {
        refuse(line,
               "ConnectionStrings has " + shown(name) + "; " + suggestion(name, {kRedis.spelling}));
      }
    }
  }

  // Other names in both sections are those of the program, unless they look like ours.
  void program(const json& value) {
    const auto path = std::string(kProgram) + "/";
    if (!value.is_object())
      refuse(lines_.at(std::string(kProgram)), "honua is a section: {\"rasterCache\": {…}}");
    for (const auto& [name, inner] : value.items()) {
      if (name == kCache) {
        cache(inner);
      } else if (!detail::nearest(name, {kCache}).empty()) {
        refuse(lines_.at(path + name),
               "honua has " + shown(name) + "; " + suggestion(name, {kCache}));
      }
    }
  }

  void cache(const json& value) {
    const auto section = std::string(kProgram) + "/" + std::string(kCache);
    const auto path = section + "/";
    cache_line_ = lines_.at(section);
    if (!value.is_object())
      refuse(*cache_line_, "rasterCache is a section: {\"enableDistributedLocking\": true}");
    const std::vector<std::string_view> ours(kCacheNames.begin(), kCacheNames.end());
    for (const auto& [name, inner] : value.items()) {
      const int line = lines_.at(path + name);
      if (std::find(ours.begin(), ours.end(), name) != ours.end()) {
        take(name, inner, line);
      } else if (!detail::nearest(name, ours).empty()) {
        refuse(line, "rasterCache has " + shown(name) + "; " + suggestion(name, ours));
      }
    }
  }

  void add_cache_defaults() {
    if (!cache_line_) return;
    for (const auto& preset : kCacheDefaults) {
      const bool is_set = std::any_of(entries_.begin(), entries_.end(), [&](const FileEntry& each) {
        return each.key == preset.key;
      });
      if (is_set) continue;
      entries_.push_back({.key = std::string(preset.key),
                          .value = std::string(preset.value),
                          .where = path_ + ":" + std::to_string(*cache_line_),
                          .spelling = std::string(preset.spelling)});
    }
  }

  void take(const std::string& name, const json& value) { take(name, value, lines_.at(name)); }

  void take(const std::string& name, const json& value, int line) {
    const auto* known = std::find_if(kNames.begin(), kNames.end(),
                                     [&](const Name& each) { return each.spelling == name; });
    if (known == kNames.end()) {
      std::vector<std::string_view> names{kSection, kProgram};
      for (const auto& each : kNames) names.push_back(each.spelling);
      refuse(line, "there is no setting " + shown(name) + "; " + suggestion(name, names));
    }
    add(*known, value, line);
  }

  void add(const Name& name, const json& value, int line) {
    const std::string spelling(name.spelling);
    const auto same = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const FileEntry& each) { return each.key == name.key; });
    if (same != entries_.end())
      refuse(line, spelling + " and " + same->spelling + " set the same thing; keep one of them");
    if (name.type == Type::truth ? !value.is_boolean() : !value.is_string()) {
      refuse(line, spelling + (name.type == Type::truth
                                   ? " has to be true or false, without quotes"
                                   : " has to be a text in quotes" + unit_hint(name.key)));
    }
    FileEntry entry{.key = std::string(name.key),
                    .value = {},
                    .where = path_ + ":" + std::to_string(line),
                    .spelling = spelling};
    if (name.type == Type::truth) {
      entry.value = value.get<bool>();
    } else {
      entry.value = value.get<std::string>();
    }
    entries_.push_back(std::move(entry));
  }

  static std::string unit_hint(std::string_view key) {
    return key == "ttl" || key == "maxWait" ? ", with its unit: \"10s\" or \"00:00:10\"" : "";
  }

  std::string path_;
  bool found_here_;
  std::map<std::string, int, std::less<>>
      lines_;                      // of each key; inside of a section: "Section/key"
  std::optional<int> cache_line_;  // where "rasterCache" is, if it is there
  std::vector<FileEntry> entries_;
};

}  // namespace

SettingsFile read_settings_file(const std::filesystem::path& path, bool found_here) {
  return Reader(path, found_here).read();
}

void refuse_local_secrets(const std::string& text) {
  const auto url = Url::parse(text);
  for (const auto option : kLocalSecrets) {
    if (url.query.contains(std::string(option))) refuse_secret("?" + std::string(option) + "=");
  }
  if (url.scheme.starts_with("postgres") && url.password.empty()) {
    for (const auto* variable : {"PGPASSWORD", "PGSERVICE"}) {
      const char* value = std::getenv(variable);
      if (value != nullptr && *value != '\0')
        refuse_secret("the variable " + std::string(variable));
    }
  }
  // The servers of redlock: have URLs of their own.
  const auto nodes = url.query.find("nodes");
  if (nodes == url.query.end()) return;
  for (const auto node : core::split_hosts(nodes->second)) refuse_local_secrets(std::string(node));
}

Duration parse_time_span(const std::string& text) {
  if (text.find(':') == std::string::npos) return parse_duration(text);
  const auto refuse = [&] {
    throw Error(Errc::invalid, "'" + printable(text, 40) +
                                   "' is not a duration; write 10s, 1m30s or 250ms, or "
                                   "hh:mm:ss as in 00:05:00");
  };
  std::string_view rest = text;
  // A number below `limit` with so many digits at most, up to what ends it.
  const auto number = [&](int limit, std::size_t digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc{} || rest[0] == '-' || value >= limit || length > digits) refuse();
    rest.remove_prefix(length);
    return value;
  };
  const auto expect = [&](char c) {
    if (!rest.starts_with(c)) refuse();
    rest.remove_prefix(1);
  };
  Duration sum{};
  if (const auto dot = rest.find('.'); dot < rest.find(':')) {
    sum += std::chrono::hours(24 * number(10000, 4));
    expect('.');
  }
  sum += std::chrono::hours(number(24, 2));
  expect(':');
  sum += std::chrono::minutes(number(60, 2));
  expect(':');
  sum += std::chrono::seconds(number(60, 2));
  if (rest.empty()) return sum;
  expect('.');
  if (rest.empty() || rest.size() > 9 || rest.find_first_not_of("0123456789") != rest.npos)
    refuse();
  Duration::rep fraction = 0;
  for (std::size_t i = 0; i < 9; ++i)
    fraction = fraction * 10 + (i < rest.size() ? rest[i] - '0' : 0);
  return sum + Duration(fraction);
}

}  // namespace interlock::config
