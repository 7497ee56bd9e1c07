// URLs as the stores that are servers read them: lists of hosts, ports, options.
#include <algorithm>

#include "backends/etcd/address.hpp"
#include "backends/postgres/settings.hpp"
#include "backends/redis/address.hpp"
#include "core/settings.hpp"
#include "fuzz.hpp"

namespace {

using interlock::Url;

// Options that name files or variables of this machine, or take long.
bool is_apart(const Url& url) {
  return std::any_of(url.query.begin(), url.query.end(), [](const auto& option) {
    const auto& name = option.first;
    return name.ends_with("-file") || name.ends_with("-env") || name == "ca" || name == "cert" ||
           name == "key" || name == "service" || name == "passfile" || name.starts_with("ssl");
  });
}

void hosts(std::string_view text) {
  for (const auto host : interlock::core::split_hosts(text)) {
    const auto end =
        fuzz::accepted([&] { return interlock::redis::Endpoint::parse(host, "6379"); });
    if (!end) continue;
    fuzz::require(!end->host.empty() && !end->port.empty(), "an endpoint has a host and a port");
    const auto again =
        fuzz::accepted([&] { return interlock::redis::Endpoint::parse(end->to_string(), "1"); });
    // A bracket in a name is an error of the one who looks the name up.
    if (end->host.find_first_of("[]") != std::string::npos) continue;
    fuzz::require(again == end, "the text of an endpoint is that endpoint: " + end->to_string());
  }
}

}  // namespace

void fuzz::run(std::string_view input) {
  hosts(input);
  auto url = accepted([&] { return Url::parse(input); });
  if (!url || is_apart(*url)) return;
  // Not the one of the input, which may be a part of an error's own text.
  std::string_view secret;
  if (!url->password.empty() && input.find(kSecret) == input.npos) url->password = secret = kSecret;
  const auto hidden = [&](const std::string& text) {
    require(secret.empty() || text.find(secret) == text.npos, "no password is shown: " + text);
  };
  (void)accepted(
      [&] {
        auto rest = *url;
        const auto settings = interlock::redis::Settings::take_from(rest);
        for (const auto& warning : settings.warnings) hidden(warning);
        rest.expect_all_taken(interlock::redis::Settings::options());
        return true;
      },
      secret);
  (void)accepted([&] { return interlock::redis::database_of(url->path); }, secret);
  if (const auto settings =
          accepted([&] { return interlock::etcd::Settings::take_from(*url); }, secret)) {
    hidden(settings->where());
    hidden(settings->readable_password().value_or(""));
  }
  if (const auto settings =
          accepted([&] { return interlock::postgres::Settings::from(*url); }, secret))
    hidden(settings->where);
}
