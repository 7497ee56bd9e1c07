#include "torture/topologies/proxies.hpp"

namespace torture {

using interlock::servers::Proxy;

void Passage::stall(Proxy::Way way, int by) {
  stalls_.at(way) += by;
  apply();
}

void Passage::change(double Proxy::Weather::*kind, double by, std::uint64_t seed) {
  constexpr double kNothing = 1e-9;
  weather_.*kind += by;
  if (weather_.*kind < kNothing) weather_.*kind = 0;
  weather_.seed = seed;
  apply();
}

void Passage::apply() {
  proxy_.flow();
  proxy_.weather(weather_);
  for (const auto way : {Proxy::to_server, Proxy::to_client}) {
    if (stalls_.at(way) > 0) proxy_.stall(way);
  }
}

namespace {

Fault weather(Nature nature, const Passages& passages, double Proxy::Weather::*kind,
              double probability) {
  return of_all(
      std::move(nature),
      [=](Random& random) {
        for (auto* passage : passages) passage->change(kind, probability, random());
      },
      [=] {
        for (auto* passage : passages) passage->change(kind, -probability, 0);
      });
}

Fault stall(Nature nature, const Passages& passages, const std::vector<Proxy::Way>& ways) {
  return one_of<Passage>(
      std::move(nature), passages,
      [ways](Passage& passage, Random&) {
        for (const auto way : ways) passage.stall(way, 1);
      },
      [ways](Passage& passage) {
        for (const auto way : ways) passage.stall(way, -1);
      });
}

}  // namespace

std::vector<Fault> passage_faults(const Passages& passages, PassageVoids voids) {
  using Weather = Proxy::Weather;
  const bool cuts_void = voids.cuts || voids.delays;
  return {
      weather({.name = "messages delayed", .voids = voids.delays}, passages, &Weather::delay, 0.3),
      weather({.name = "connections cut at any byte", .voids = cuts_void}, passages, &Weather::cut,
              0.02),
      weather({.name = "replies lost", .voids = cuts_void}, passages, &Weather::lose_reply, 0.01),
      weather({.name = "requests delivered late", .voids = cuts_void}, passages, &Weather::late,
              0.06),
      weather({.name = "requests delivered twice",
               .voids = cuts_void,
               .brings_back = voids.copies_bring_back},
              passages, &Weather::twice, 0.02),
      stall({.name = "requests held up", .voids = voids.delays}, passages, {Proxy::to_server}),
      stall({.name = "replies held up", .voids = voids.delays}, passages, {Proxy::to_client}),
      stall({.name = "cut off", .voids = voids.delays}, passages,
            {Proxy::to_server, Proxy::to_client}),
      one_of<Passage>(
          {.name = "connections cut", .voids = cuts_void}, passages,
          [](Passage& passage, Random&) { passage.cut(); }, [](Passage&) {}),
  };
}

}  // namespace torture
