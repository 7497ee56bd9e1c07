#include "interlock/client.hpp"

#include "core/engine.hpp"

namespace interlock {

Client::Client(std::unique_ptr<Backend> backend, ClientOptions options)
    : core_(core::Engine::make(std::move(backend), std::move(options))) {}

const Traits& Client::traits() const { return core_->traits(); }
Snapshot Client::inspect(const Query& query) const { return core_->inspect(query); }
Lease Client::adopt(std::string_view token, bool renew) const { return core_->adopt(token, renew); }
bool Client::evict(std::string_view resource, const Owner& owner) const {
  return core_->evict(resource, owner);
}

void Client::tell(Event event, std::string_view resource, Duration elapsed) const {
  const Claim none;
  core_->observe({.event = event, .claim = none, .resource = resource, .elapsed = elapsed});
}

Attempt Client::acquire(std::vector<Part> parts, const Options& options, const Wait& wait) const {
  return core_->acquire(core_->prepare(std::move(parts), options), wait);
}

void Client::acquire(std::vector<Part> parts, const Options& options, const Wait& wait,
                     Callback then) const {
  core_->acquire(core_->prepare(std::move(parts), options), wait, std::move(then));
}

}  // namespace interlock
