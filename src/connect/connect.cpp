#include <algorithm>

#include "config/default_place.hpp"
#include "core/text.hpp"
#include "interlock/client.hpp"
#include "interlock/config.hpp"

namespace interlock {

std::unique_ptr<Backend> stores::open(std::string_view text, const std::shared_ptr<Clock>& clock) {
  if (text == detail::kWithheldStore) {
    throw Error(Errc::invalid,
                "interlock run withholds the URL of its store from its command, as it has a "
                "password; name a "
                "store here, or give that one ?password-file= or ?password-env=");
  }
  auto url = Url::parse(text);
  const auto entries = all();
  for (const auto& entry : entries) {
    if (std::find(entry.schemes.begin(), entry.schemes.end(), url.scheme) == entry.schemes.end())
      continue;
    return entry.open(std::move(url), clock ? clock : system_clock());
  }
  std::string known;
  for (const auto& entry : entries) known += (known.empty() ? "" : ", ") + entry.example;
  throw Error(Errc::invalid, "there is no store for '" + printable(url.scheme, 40) +
                                 ":' in this build; there is " + known);
}

Client connect(std::string_view url, ClientOptions options) {
  config::check_default_place(url);
  auto backend = stores::open(url, options.clock);
  return Client(std::move(backend), std::move(options));
}

}  // namespace interlock
