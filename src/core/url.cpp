#include <algorithm>

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

}  // namespace

Url Url::parse(std::string_view text) {
  Url url;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon))) {
    refuse("has to begin with a scheme, like memory: or file:///var/lib/app/locks");
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
        refuse("names the option '" + printable(pair.substr(0, equals), 40) + "' twice");
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
  std::string text = scheme + ":";
  if (!authority.empty() || path.starts_with('/')) text += "//";
  if (!user.empty() || !password.empty()) {
    text += percent_encode(user);
    if (!password.empty()) text += ":***";
    text += "@";
  }
  text += authority + path;
  char mark = '?';
  for (const auto& [name, value] : query) {
    // Where a password is may be shown; a value with an @ may be a URL that has one.
    const bool place = name.ends_with("-file") || name.ends_with("-env");
    const bool secret = value.find('@') != std::string::npos ||
                        (!place && (name.find("pass") != std::string::npos ||
                                    name.find("secret") != std::string::npos));
    text += mark + percent_encode(name) + "=" + (secret ? "***" : percent_encode(value));
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
  refuse("has an option '" + printable(query.begin()->first, 40) + "' that " + scheme +
         ": does not know" + (names.empty() ? "; it has none" : "; it knows " + names));
}

}  // namespace interlock
