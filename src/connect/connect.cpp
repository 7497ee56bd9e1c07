#include <algorithm>

#include "config/default_place.hpp"
#include "core/text.hpp"
#include "interlock/client.hpp"
#include "interlock/config.hpp"

namespace interlock {

namespace {

/// The component of find_package that has a store for it; empty: none.
std::string component_of(std::string_view scheme) {
  if (scheme.starts_with("redis") || scheme == "redlock") return "redis";
  if (scheme.starts_with("postgres")) return "postgres";
  if (scheme.starts_with("etcd")) return "etcd";
  return {};
}

/// host:port, which reads like a URL with a scheme.
bool is_address(const Url& url) {
  constexpr std::size_t kLongestPort = 5;
  return url.authority.empty() && url.query.empty() && !url.path.empty() &&
         url.path.size() <= kLongestPort &&
         url.path.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Error detail::no_store(const Url& url, const std::vector<StoreEntry>& stores) {
  std::string known;
  std::vector<std::string_view> schemes;
  for (const auto& store : stores) {
    known += (known.empty() ? "" : ", ") + store.schemes.front() + ":";
    schemes.insert(schemes.end(), store.schemes.begin(), store.schemes.end());
  }
  const auto scheme = printable(url.scheme, 40);
  const auto missing = "this program has no store for " + scheme + ":; it has " + known;
  const auto component = component_of(url.scheme);
  const bool linked = std::any_of(stores.begin(), stores.end(),
                                  [&](const StoreEntry& store) { return store.name == component; });
  if (!component.empty() && !linked)
    return {Errc::invalid,
            missing + ". With CMake: find_package(interlock COMPONENTS " + component + ")"};
  if (is_address(url))
    return {Errc::invalid, "the store's URL has to begin with a scheme; did you mean redis://" +
                               scheme + ":" + url.path + "?"};
  const auto near = nearest(url.scheme, schemes);
  return {Errc::invalid, missing + (near.empty() ? "; name one of these"
                                                 : "; did you mean " + std::string(near) + ":?")};
}

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
  throw detail::no_store(url, entries);
}

Client connect(std::string_view url, ClientOptions options) {
  config::check_default_place(url);
  auto backend = stores::open(url, options.clock);
  return Client(std::move(backend), std::move(options));
}

}  // namespace interlock
