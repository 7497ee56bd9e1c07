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
  const auto delaying = [=](std::string name) {
    return voids.delays ? may_fail_over(std::move(name)) : Nature{.name = std::move(name)};
  };
  const auto cutting = [=](std::string name) {
    auto nature = delaying(std::move(name));
    nature.voids = nature.voids || voids.cuts;
    return nature;
  };
  auto late = cutting("requests delivered late");
  late.at_least = std::chrono::seconds(3);
  auto twice = cutting("requests delivered twice");
  twice.brings_back = twice.brings_back || voids.copies_bring_back;
  return {
      weather(delaying("messages delayed"), passages, &Weather::delay, 0.3),
      weather(cutting("connections cut at any byte"), passages, &Weather::cut, 0.02),
      weather(cutting("replies lost"), passages, &Weather::lose_reply, 0.01),
      weather(std::move(late), passages, &Weather::late, 0.06),
      weather(std::move(twice), passages, &Weather::twice, 0.02),
      stall(delaying("requests held up"), passages, {Proxy::to_server}),
      stall(delaying("replies held up"), passages, {Proxy::to_client}),
      stall(delaying("cut off"), passages, {Proxy::to_server, Proxy::to_client}),
      one_of<Passage>(
          cutting("connections cut"), passages, [](Passage& passage, Random&) { passage.cut(); },
          [](Passage&) {}),
  };
}

Fault late_on_one(const Passages& passages) {
  constexpr double kMany = 0.3;
  return one_of<Passage>(
      {.name = "requests to one node delivered late"}, passages,
      [](Passage& passage, Random& random) {
        passage.change(&Proxy::Weather::late, kMany, random());
      },
      [](Passage& passage) { passage.change(&Proxy::Weather::late, -kMany, 0); });
}

}  // namespace torture
