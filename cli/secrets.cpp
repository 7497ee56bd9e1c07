#include "secrets.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interlock/backend.hpp"

namespace cli {

namespace {

constexpr std::string_view kToken = "il1.";

// What may be shown of it. A URL that makes no sense may have a password anywhere.
std::string shown(std::string_view url) {
  if (url.find_first_of("@?/") == std::string_view::npos) return std::string(url);  // host:port
  try {
    return interlock::Url::parse(url).to_string();
  } catch (const interlock::Error&) {
    return "***";
  }
}

bool masked(const std::string& url) { return url.find("***") != std::string::npos; }

/// user:password@, wherever a URL that makes no sense has it.
bool has_user_and_password(std::string_view url) {
  const auto at = url.rfind('@');
  if (at == std::string_view::npos) return false;
  const auto slashes = url.find("://");
  const auto begin = slashes == std::string_view::npos ? 0 : slashes + 3;
  if (begin > at) return false;
  const auto before = url.substr(begin, at - begin);
  const auto colon = before.find(':');
  return colon != std::string_view::npos && colon + 1 < before.size();
}

/// password=… and options with similar names; not an option that names a file or a variable.
bool has_password_option(std::string_view url) {
  while (true) {
    const auto begin = url.find_first_of("?&");
    if (begin == std::string_view::npos) return false;
    url.remove_prefix(begin + 1);
    const auto option = url.substr(0, url.find('&'));
    const auto equals = option.find('=');
    if (equals == std::string_view::npos || equals + 1 == option.size()) continue;
    const auto name = option.substr(0, equals);
    if (name.ends_with("-file") || name.ends_with("-env") || name == "passfile") continue;
    for (const auto* part : {"pass", "auth", "secret", "token", "pwd"}) {
      if (name.find(part) != std::string_view::npos) return true;
    }
  }
}

void overwrite(char* text, const std::string& with) {
  const auto size = std::strlen(text);
  if (with.size() > size) {
    std::memset(text, '*', size);
    return;
  }
  std::memset(text, 0, size);
  std::copy(with.begin(), with.end(), text);  // what follows is zero already
}

}  // namespace

void hide_secrets(int argc, char** argv) {
  bool store = false;  // the word before was --url
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const auto value = word.substr(equals == std::string_view::npos ? 0 : equals + 1);
    char* const at = argv[i] + (word.size() - value.size());
    if (store || word.starts_with("--url=") || value.find("://") != std::string_view::npos) {
      const auto text = shown(value);
      if (masked(text)) overwrite(at, text);
    } else if (value.starts_with(kToken)) {
      overwrite(at, std::string(kToken) + "***");
    }
    store = word == "--url";
  }
}

bool has_secret(std::string_view url) { return masked(shown(url)); }

bool has_password(std::string_view url) {
  const auto text = shown(url);
  if (!masked(text)) return false;
  if (has_password_option(url)) return true;
  const bool makes_sense = !text.ends_with("://***") && text != "***";
  return makes_sense ? text.find("***@") != std::string::npos : has_user_and_password(url);
}

std::vector<std::string> secret_variables(const std::string& text) {
  std::vector<std::string> names;
  if (const char* url = std::getenv("INTERLOCK_URL"); url != nullptr && has_secret(url)) {
    names.emplace_back("INTERLOCK_URL");
  }
  auto url = interlock::Url::parse(text);
  for (const char* option : {"password-env", "sentinel-password-env"}) {
    if (auto variable = url.take(option); !variable.empty()) names.push_back(std::move(variable));
  }
  // A Redlock has a whole URL for each of its servers.
  for (std::string_view nodes = url.query["nodes"]; !nodes.empty();) {
    const auto comma = std::min(nodes.find(','), nodes.size());
    for (auto& name : secret_variables(std::string(nodes.substr(0, comma))))
      names.push_back(std::move(name));
    nodes.remove_prefix(std::min(comma + 1, nodes.size()));
  }
  const auto add = [&](const char* name) {
    if (std::getenv(name) != nullptr) names.emplace_back(name);
  };
  if (url.scheme == "postgres" || url.scheme == "postgresql") {
    for (const char* name : {"PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"}) add(name);
  }
  return names;
}

}  // namespace cli
