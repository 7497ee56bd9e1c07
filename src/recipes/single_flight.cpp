#include "interlock/single_flight.hpp"

#include <utility>

#include "core/text.hpp"
#include "interlock/duration.hpp"
#include "recipes/flights.hpp"

namespace interlock {

namespace {

// Why a caller without a limit of its own got nothing.
[[noreturn]] void give_up(flights::Flights& flights, const std::string& key, const Wait& wait) {
  const Error::Where where{
      .resource = flights.workshop().lock_name(key), .node = {}, .maybe_held = false};
  if (wait.stop.stop_requested() || !wait.limit)
    throw Error(Errc::cancelled, "stopped while it waited for '" + printable(key, 200) + "'",
                where);
  throw Error(Errc::timed_out,
              "'" + printable(key, 200) + "' was not there within " + format_duration(*wait.limit) +
                  "; it is still being generated, or waited for: try again, or allow more time",
              where);
}

}  // namespace

SingleFlight::SingleFlight(Generate generate, Client client, Cache cache,
                           SingleFlightOptions options)
    : flights_(new flights::Flights(std::move(client), std::move(cache), std::move(generate),
                                    std::move(options))) {}

SingleFlight::SingleFlight(SingleFlight&&) noexcept = default;
SingleFlight& SingleFlight::operator=(SingleFlight&&) noexcept = default;
SingleFlight::~SingleFlight() = default;

void SingleFlight::Dispose::operator()(flights::Flights* flights) const noexcept {
  if (!flights->forked()) delete flights;
}

std::string SingleFlight::get(const std::string& key, std::stop_token stop) {
  const Wait wait{flights_->workshop().options().max_wait, {}, std::move(stop)};
  if (auto value = flights_->get(key, wait)) return *std::move(value);
  give_up(*flights_, key, wait);
}

std::optional<std::string> SingleFlight::try_get_for(const std::string& key, Duration limit,
                                                     std::stop_token stop) {
  return flights_->get(key, Wait::for_(limit, std::move(stop)));
}

std::string SingleFlight::force(const std::string& key, std::stop_token stop) {
  const Wait wait{flights_->workshop().options().max_wait, {}, std::move(stop)};
  if (auto value = flights_->replace(key, wait)) return *std::move(value);
  give_up(*flights_, key, wait);
}

bool SingleFlight::exists(const std::string& key) const {
  return flights_->workshop().look(key).has_value();
}

void SingleFlight::remove(const std::string& key, std::stop_token stop) {
  flights_->remove(key, {flights_->workshop().options().max_wait, {}, std::move(stop)});
}

}  // namespace interlock
