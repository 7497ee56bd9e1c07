#include "interlock/acquirer.hpp"

#include "core/engine.hpp"

namespace interlock {

namespace {

// Expected outcomes are values; a store that fails is not expected.
Attempt or_throw(Attempt attempt) {
  if (!attempt && attempt.outcome() == Outcome::failed) throw Error(attempt.error());
  return attempt;
}

}  // namespace

Acquirer::Acquirer(Client client, std::vector<Part> parts, Options options)
    : client_(std::move(client)),
      template_(client_.core_->prepare(std::move(parts), std::move(options))) {}

Lease Acquirer::acquire(std::stop_token stop) const {
  return client_.core_->acquire(template_, max_wait(std::move(stop))).value();
}

Attempt Acquirer::try_acquire() const {
  return or_throw(client_.core_->acquire(template_, Wait::once()));
}

Attempt Acquirer::try_acquire_for(Duration limit, std::stop_token stop) const {
  return or_throw(client_.core_->acquire(template_, Wait::for_(limit, std::move(stop))));
}

Attempt Acquirer::try_acquire_times(Retry tries, std::stop_token stop) const {
  return or_throw(client_.core_->acquire(template_, Wait::times(tries, std::move(stop))));
}

void Acquirer::acquire(const Wait& wait, Callback then) const {
  client_.core_->acquire(template_, wait, std::move(then));
}

const std::string& Acquirer::resource() const noexcept { return template_->resource; }

Wait Acquirer::max_wait(std::stop_token stop) const {
  return {.limit = template_->options.max_wait, .tries = {}, .stop = std::move(stop)};
}

}  // namespace interlock
