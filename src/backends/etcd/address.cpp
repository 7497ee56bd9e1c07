#include "backends/etcd/address.hpp"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/text.hpp"
#include "interlock/duration.hpp"

namespace interlock::etcd {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid, "the store's URL: " + why);
}

std::string read_file(const std::string& path, const char* what) {
  if (path.empty()) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) refuse(std::string(what) + ": " + path + " can't be read, or is empty");
  return text;
}

// Not in `ps`, not in a shell's history.
std::string secret(Url& url) {
  const auto file = url.take("password-file");
  const auto variable = url.take("password-env");
  if ((url.password.empty() ? 0 : 1) + (file.empty() ? 0 : 1) + (variable.empty() ? 0 : 1) > 1)
    refuse("the password is given in more than one way");
  if (!file.empty()) {
    auto text = read_file(file, "password-file");
    text.resize(std::min(text.find_first_of("\r\n"), text.size()));
    return text;
  }
  if (variable.empty()) return url.password;
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) refuse("password-env: the variable " + variable + " is not set");
  return value;
}

// "host", "host:port", "[::1]:port".
std::string endpoint(std::string_view text) {
  const auto bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) refuse("a host begins with [ and has no ]");
  const auto colon = text.find(':', bracket);
  const auto host = text.substr(0, colon);
  if (host.empty()) refuse("it needs a host, like etcd://localhost:2379");
  if (colon == std::string_view::npos) return std::string(host) + ":2379";
  const auto port = text.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  // What stands there may be a part of a password that has a slash in it.
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535)
    refuse("a port is a number up to 65535 (if that is a part of a password: percent-encode it)");
  return std::string(host) + ":" + std::to_string(number);
}

}  // namespace

Settings Settings::take_from(Url url) {
  Settings settings;
  settings.tls = url.scheme == "etcds";
  settings.user = url.user;
  settings.password = secret(url);
  if (settings.user.empty() != settings.password.empty())
    refuse("a user needs a password, and a password a user");
  settings.prefix = url.query.contains("prefix") ? url.take("prefix") : "interlock/";
  if (!is_plain_utf8(settings.prefix)) refuse("prefix: no control characters, please");
  if (const auto timeout = url.take("timeout"); !timeout.empty()) {
    settings.call_timeout = parse_duration(timeout);
    if (settings.call_timeout < std::chrono::milliseconds(10))
      refuse("timeout is too short; 5s is usual");
  }
  settings.ca = read_file(url.take("ca"), "ca");
  settings.certificate = read_file(url.take("cert"), "cert");
  settings.key = read_file(url.take("key"), "key");
  settings.server_name = url.take("server-name");
  if (settings.certificate.empty() != settings.key.empty())
    refuse("cert and key go together: our certificate and its private key");
  if (!settings.tls && !(settings.ca + settings.certificate + settings.server_name).empty())
    refuse("ca, cert, key and server-name are for TLS: etcds://");
  url.expect_all_taken(
      {"prefix", "timeout", "password-file", "password-env", "ca", "cert", "key", "server-name"});
  if (url.path.size() > 1) refuse("there is no path; names are told apart by ?prefix=");
  for (std::string_view rest = url.authority; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    settings.endpoints.push_back(endpoint(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (settings.endpoints.empty()) refuse("it needs a host, like etcd://localhost:2379");
  return settings;
}

std::string Settings::where() const {
  std::string text;
  for (const auto& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint;
  return (tls ? "etcds://" : "etcd://") + text;
}

}  // namespace interlock::etcd
