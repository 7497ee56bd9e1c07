#include "backends/etcd/address.hpp"

#include <openssl/ssl.h>

#include <charconv>

#include "core/hosts.hpp"
#include "core/option_file.hpp"
#include "core/settings.hpp"
#include "core/text.hpp"

namespace interlock::etcd {

namespace {

using core::refuse_url;

// "host", "host:port", "[::1]:port".
std::string endpoint(std::string_view text) {
  const auto bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) refuse_url("a host begins with [ and has no ]");
  const auto colon = text.find(':', bracket);
  const auto host = text.substr(0, colon);
  if (host.empty()) refuse_url("it needs a host, like etcd://localhost:2379");
  if (colon == std::string_view::npos) return std::string(host) + ":2379";
  const auto port = text.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  // What stands there may be a part of a password that has a slash in it.
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535)
    refuse_url(
        "a port is a number up to 65535 (if that is a part of a password: percent-encode it)");
  return std::string(host) + ":" + std::to_string(number);
}

}  // namespace

Settings Settings::take_from(Url url) {
  // A release that goes on in the background while the process ends must find OpenSSL in place.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  Settings settings;
  settings.tls = url.scheme == "etcds";
  settings.user = url.user;
  settings.password = core::take_password(url, settings.warnings);
  if (settings.user.empty() != settings.password.empty())
    refuse_url("a user needs a password, and a password a user");
  settings.prefix = url.query.contains("prefix") ? url.take("prefix") : "interlock/";
  if (!is_plain_utf8(settings.prefix)) refuse_url("prefix: no control characters, please");
  settings.call_timeout = core::take_timeout(url, settings.call_timeout);
  using core::Secrecy;
  settings.ca = core::take_file(url, "ca", Secrecy::open, settings.warnings);
  settings.certificate = core::take_file(url, "cert", Secrecy::open, settings.warnings);
  settings.key = core::take_file(url, "key", Secrecy::secret, settings.warnings);
  settings.server_name = url.take("server-name");
  if (settings.certificate.empty() != settings.key.empty())
    refuse_url("cert and key go together: our certificate and its private key");
  if (!settings.tls && !(settings.ca + settings.certificate + settings.server_name).empty())
    refuse_url("ca, cert, key and server-name are for TLS: etcds://");
  url.expect_all_taken(
      {"prefix", "timeout", "password-file", "password-env", "ca", "cert", "key", "server-name"});
  if (url.path.size() > 1) refuse_url("there is no path; names are told apart by ?prefix=");
  for (const auto host : core::split_hosts(url.authority))
    settings.endpoints.push_back(endpoint(host));
  if (settings.endpoints.empty()) refuse_url("it needs a host, like etcd://localhost:2379");
  return settings;
}

std::optional<std::string> Settings::readable_password() const {
  if (tls || password.empty()) return std::nullopt;
  std::vector<std::string> hosts;
  for (const auto& endpoint : endpoints) {
    auto host = endpoint.substr(0, endpoint.rfind(':'));
    hosts.push_back(host.starts_with('[') ? host.substr(1, host.size() - 2) : std::move(host));
  }
  return core::readable_password(hosts, "etcds");
}

std::string Settings::where() const {
  std::string text;
  for (const auto& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint;
  return where(text);
}

std::string Settings::where(const std::string& endpoint) const {
  return (tls ? "etcds://" : "etcd://") + endpoint;
}

}  // namespace interlock::etcd
