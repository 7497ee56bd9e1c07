#include <algorithm>
#include <array>

#include "core/text.hpp"
#include "interlock/backend.hpp"

namespace interlock {

namespace {

// The text of a bad URL may hold a password, so it is never quoted whole.
[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid, "the store's URL " + why);
}

std::string decode(std::string_view text, const char* what) {
  auto decoded = percent_decode(text);
  if (!decoded) refuse(std::string("has a broken % escape in its ") + what);
  if (decoded->find('\0') != std::string::npos)
    refuse(std::string("has a NUL character in its ") + what);
  return std::move(*decoded);
}

bool is_scheme(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-';
  });
}

// The options whose values are no secrets, whoever gets them wrong.
constexpr std::array<std::string_view, 29> kShown = {
    "ca",
    "cert",
    "channel_binding",
    "db",
    "gssencmode",
    "host",
    "key",
    "listen",
    "min-replicas",
    "mode",
    "network",
    "nodes",
    "passfile",
    "password-env",
    "password-file",
    "pooler",
    "port",
    "prefix",
    "sentinel-password-env",
    "sentinel-password-file",
    "sentinel-user",
    "server-name",
    "ssl_min_protocol_version",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "sslsni",
    "timeout",
};

bool consists_of(std::string_view text, bool (*fits)(char)) {
  return std::all_of(text.begin(), text.end(), fits);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_letter(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

// An IPv6 address. Anything else between brackets may be a whole URL with a password.
bool is_address(std::string_view text) {
  const auto zone = std::min(text.find('%'), text.size());
  return consists_of(text.substr(0, zone),
                     [](char c) {
                       return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
                              c == ':' || c == '.';
                     }) &&
         consists_of(text.substr(zone),
                     [](char c) { return is_name_letter(c) || c == '%' || c == '.'; });
}

bool is_host_and_port(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || !is_address(text.substr(1, end - 1))) return false;
    text.remove_prefix(end);
  }
  const auto colon = std::min(text.find(':'), text.size());
  const auto port = text.substr(std::min(colon + 1, text.size()));
  return colon > 0 && port.size() <= 5 && consists_of(port, is_digit) &&
         consists_of(text.substr(0, colon),
                     [](char c) { return is_name_letter(c) || c == '.' || c == '%' || c == ']'; });
}

bool are_hosts(std::string_view text) {
  while (!text.empty()) {
    auto host = text.substr(0, text.find(','));
    text.remove_prefix(std::min(host.size() + 1, text.size()));
    if (const auto mark = host.find("://"); mark != std::string_view::npos)
      host.remove_prefix(mark + 3);
    if (!is_host_and_port(host)) return false;
  }
  return true;
}

bool is_shown(std::string_view option) {
  return std::find(kShown.begin(), kShown.end(), option) != kShown.end();
}

bool may_be_shown(std::string_view option, std::string_view value) {
  if (!is_shown(option)) return false;
  return option == "nodes" ? are_hosts(value) : value.find('@') == std::string_view::npos;
}

// Whether everything in it looks like what it should be; else nobody can tell what is a secret.
bool makes_sense(const Url& url) {
  if (url.scheme == "memory") return url.authority.empty();
  if (!are_hosts(url.authority)) return false;
  if (url.scheme != "file" && url.path.find('@') != std::string::npos) return false;
  if (!url.path.empty() && url.path[0] != '/') return false;
  const bool numbered = url.scheme == "redis" || url.scheme == "rediss";
  if (numbered && !url.path.empty() && !consists_of(url.path.substr(1), is_digit)) return false;
  return std::all_of(url.query.begin(), url.query.end(), [](const auto& option) {
    const auto& [name, value] = option;
    return is_shown(name) || (consists_of(name, is_name_letter) && !value.empty() &&
                              value.find('@') == std::string::npos);
  });
}

// What a text without a scheme was meant to be. It is quoted only if it looks like a path or an address, and so like no
// password.
std::string meant(std::string_view text) {
  if (text.starts_with("./") || text.starts_with("../") || text.starts_with("~/"))
    return "; for a directory it takes the whole path, like file:///var/lib/app/locks";
  const auto of_path = [](char c) { return is_name_letter(c) || c == '.' || c == '/'; };
  if (text.starts_with('/') && consists_of(text, of_path))
    return "; did you mean file://" + printable(text, 200) + "?";
  if (text == "localhost" ||
      (text.find_first_of(".:") != std::string_view::npos && is_host_and_port(text)))
    return "; did you mean redis://" + printable(text, 200) + "?";
  return ", like file:///var/lib/app/locks or redis://localhost:6379";
}

// An option's name, for errors: without a value it may as well be a part of a password.
std::string quoted(std::string_view name, std::string_view value) {
  if (value.empty() || value.find('@') != std::string_view::npos ||
      !consists_of(name, is_name_letter)) {
    return "";
  }
  return " '" + printable(name, 40) + "'";
}

}  // namespace

Url Url::parse(std::string_view text) {
  Url url;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon))) {
    refuse("has to begin with a scheme" + meant(text));
  }
  url.scheme = text.substr(0, colon);
  auto rest = text.substr(colon + 1);
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    auto query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
    while (!query.empty()) {
      const auto end = std::min(query.find('&'), query.size());
      const auto pair = query.substr(0, end);
      const auto equals = std::min(pair.find('='), pair.size());
      const auto value = equals < pair.size() ? pair.substr(equals + 1) : std::string_view{};
      if (!url.query.emplace(decode(pair.substr(0, equals), "query"), decode(value, "query"))
               .second) {
        refuse("names an option" + quoted(pair.substr(0, equals), value) + " twice");
      }
      query.remove_prefix(std::min(end + 1, query.size()));
    }
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const auto slash = std::min(rest.find('/'), rest.size());
    auto authority = rest.substr(0, slash);
    rest.remove_prefix(slash);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
      const auto user = authority.substr(0, at);
      const auto mark = std::min(user.find(':'), user.size());
      // host:port,user:password@host
      const auto comma = user.find(',');
      if (comma != std::string_view::npos && mark < comma && comma > mark + 1 &&
          user.substr(mark + 1, comma - mark - 1).find_first_not_of("0123456789") ==
              std::string_view::npos) {
        refuse(
            "has to name user:password@ before the first host, once for all (in a password, a "
            "comma "
            "is written as %2C)");
      }
      url.user = decode(user.substr(0, mark), "user");
      if (mark < user.size()) url.password = decode(user.substr(mark + 1), "password");
      authority.remove_prefix(at + 1);
    }
    url.authority = authority;
  }
  url.path = decode(rest, "path");
  return url;
}

std::string Url::to_string() const {
  // A password with a / or ? in it ends up where a host, a path or an option is expected.
  if (!makes_sense(*this)) return scheme + "://***";
  std::string text = scheme + ":";
  const bool has_user = !user.empty() || !password.empty();
  if (has_user || !authority.empty() || path.starts_with('/')) text += "//";
  if (has_user) {
    // Some programs for Redis take a lone user for the password.
    const bool alone = password.empty() && scheme.starts_with("red") &&
                       !query.contains("password-file") && !query.contains("password-env");
    text += alone ? "***" : percent_encode(user);
    if (!password.empty()) text += ":***";
    text += "@";
  }
  text += authority + path;
  char mark = '?';
  for (const auto& [name, value] : query) {
    text += mark + percent_encode(name) + "=" +
            (may_be_shown(name, value) ? percent_encode(value) : "***");
    mark = '&';
  }
  return text;
}

std::string Url::take(std::string_view name, std::string fallback) {
  const auto it = query.find(name);
  if (it == query.end()) return fallback;
  auto value = std::move(it->second);
  query.erase(it);
  return value;
}

void Url::expect_all_taken(const std::vector<std::string_view>& known) const {
  if (query.empty()) return;
  std::string names;
  for (const auto name : known) names += (names.empty() ? "" : ", ") + std::string(name);
  const auto& [name, value] = *query.begin();
  refuse("has an option" + quoted(name, value) + " that " + scheme + ": does not know" +
         (names.empty() ? "; it has none" : "; it knows " + names));
}

}  // namespace interlock
