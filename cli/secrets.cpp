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

void overwrite(char* text, const std::string& with) {
  const auto size = std::strlen(text);
  if (with.size() > size) {
    std::memset(text, '*', size);
    return;
  }
  std::memset(text, 0, size);
  std::memcpy(text, with.data(), with.size());
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
