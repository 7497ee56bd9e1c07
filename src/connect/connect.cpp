#include <algorithm>

#include "core/text.hpp"
#include "interlock/client.hpp"

namespace interlock {

Client connect(std::string_view text, ClientOptions options) {
  auto url = Url::parse(text);
  const auto entries = stores::all();
  for (const auto& entry : entries) {
    if (std::find(entry.schemes.begin(), entry.schemes.end(), url.scheme) == entry.schemes.end())
      continue;
    return Client(entry.open(std::move(url), options.clock ? options.clock : system_clock()),
                  std::move(options));
  }
  std::string known;
  for (const auto& entry : entries) known += (known.empty() ? "" : ", ") + entry.example;
  throw Error(Errc::invalid, "there is no store for '" + printable(url.scheme, 40) +
                                 ":' in this build; there is " + known);
}

}  // namespace interlock
