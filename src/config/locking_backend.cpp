// Which store a Locking uses that was given none.
#include "interlock/config.hpp"
#include "interlock/locking.hpp"

namespace interlock {

namespace {

Config settings(std::string_view backend) {
  Presets presets;
  const bool is_url = backend.find(':') != std::string_view::npos;
  if (!backend.empty()) (is_url ? presets.url : presets.backend) = std::string(backend);
  return Config::load(presets);
}

}  // namespace

Locking::Locking(std::string identity, std::string_view backend, ClientOptions options)
    : Locking(std::move(identity), connect(settings(backend), std::move(options))) {}

}  // namespace interlock
