#include "profiles.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "interlock/backend.hpp"

namespace cli::scale {

using namespace std::chrono_literals;

namespace {

void log(Store& store, std::initializer_list<Step> steps) {
  for (const auto step : steps) store.cost(step).logged = true;
}

struct CallCost {
  double fixed;
  double per_record;
  double per_doubling;
};
struct Measured {
  const char* name;
  double client;
  double woken;
  double one_way;
  double push;
  double idle;
  double flush;
  double crowding;
  std::array<CallCost, kSteps> costs;  // take, join, claim, beat, free, pass, renew
};
// ---- measured and written by bench/scaling, in microseconds
constexpr std::array kMeasured = {
    Measured{.name = "file",
             .client = 2.8,
             .woken = 133,
             .one_way = 0.0,
             .push = 100,
             .idle = 0.0,
             .flush = 0.0,
             .crowding = 0.06,
             .costs = {{{24.0, 2.5, 0.0},
                        {38.4, 6.2, 0.0},
                        {35.1, 6.2, 0.0},
                        {28.0, 6.2, 0.0},
                        {25.7, 2.6, 0.0},
                        {39.1, 6.3, 0.0},
                        {27.4, 2.6, 0.0}}}},
    Measured{.name = "redis",
             .client = 14.9,
             .woken = 71.9,
             .one_way = 18.4,
             .push = 32.5,
             .idle = 28.9,
             .flush = 0.0,
             .crowding = 0.09,
             .costs = {{{18.0, 0.0, 0.0},
                        {23.9, 0.0, 0.0},
                        {15.7, 0.0, 0.0},
                        {23.7, 0.0, 0.0},
                        {11.6, 0.0, 0.0},
                        {13.8, 0.0, 0.0},
                        {9.6, 0.0, 0.0}}}},
    Measured{.name = "redis-cluster",
             .client = 16.7,
             .woken = 101,
             .one_way = 16.2,
             .push = 89.3,
             .idle = 26.6,
             .flush = 0.0,
             .crowding = 0.04,
             .costs = {{{21.7, 0.0, 0.0},
                        {37.7, 0.0, 0.0},
                        {23.3, 0.0, 0.0},
                        {25.7, 0.0, 0.0},
                        {15.5, 0.0, 0.0},
                        {20.5, 0.0, 0.0},
                        {15.7, 0.0, 0.0}}}},
    Measured{.name = "redlock",
             .client = 47.4,
             .woken = 89.8,
             .one_way = 17.4,
             .push = 101,
             .idle = 26.0,
             .flush = 0.0,
             .crowding = 0.01,
             .costs = {{{58.4, 0.0, 0.0},
                        {97.0, 0.0, 0.0},
                        {54.6, 0.0, 0.0},
                        {44.5, 0.0, 0.0},
                        {44.0, 0.0, 0.0},
                        {50.9, 0.0, 0.0},
                        {54.2, 0.0, 0.0}}}},
    Measured{.name = "postgres",
             .client = 28.0,
             .woken = 92.7,
             .one_way = 19.6,
             .push = 668,
             .idle = 37.1,
             .flush = 0.0,
             .crowding = 0.06,
             .costs = {{{84.7, 0.0, 0.0},
                        {324, 0.0, 34.7},
                        {83.1, 0.0, 34.7},
                        {303, 0.2, 34.7},
                        {70.3, 0.0, 0.0},
                        {93.5, 0.0, 34.7},
                        {182, 0.0, 0.0}}}},
    Measured{.name = "postgres-lease",
             .client = 27.6,
             .woken = 97.9,
             .one_way = 6.5,
             .push = 809,
             .idle = 42.1,
             .flush = 124,
             .crowding = 0.20,
             .costs = {{{99.0, 0.4, 0.0},
                        {314, 0.4, 28.5},
                        {114, 0.0, 28.5},
                        {204, 0.4, 28.5},
                        {99.0, 0.0, 0.0},
                        {147, 0.0, 28.5},
                        {188, 0.0, 0.0}}}},
    Measured{.name = "etcd",
             .client = 133,
             .woken = 683,
             .one_way = 110,
             .push = 1050,
             .idle = 349,
             .flush = 52.0,
             .crowding = 0.00,
             .costs = {{{183, 5.3, 0.0},
                        {244, 5.3, 0.0},
                        {631, 4.4, 0.0},
                        {166, 0.0, 0.0},
                        {168, 0.3, 0.0},
                        {131, 0.3, 0.0},
                        {280, 0.0, 0.0}}}},
};
// ---- end

}  // namespace

// Beats: heartbeat of the store's Traits, and what it says in Answer::look_again.
Store shape_of(const std::string& kind) {
  Store store;
  store.name = kind;
  if (kind == "file") {
    store.on_clients = true;
    store.threads = 0;
    store.gate = Gate::shard;
    store.gate_poll = 75us;  // 20 us, and the timer's slack
    return store;
  }
  if (kind == "redis" || kind == "redis-cluster" || kind == "redlock") {
    store.second_beat = 500ms;
    if (kind == "redis-cluster") store.servers = 3;
    if (kind == "redlock") store.servers = store.votes = 3;
    return store;
  }
  if (kind == "postgres" || kind == "postgres-lease") {
    store.threads = 0;
    store.gate = Gate::lock;
    store.beat = 5s;
    store.first_beat = kind == "postgres" ? 200ms : 1s;
    store.second_beat = 500ms;
    if (kind == "postgres-lease") log(store, {Step::take, Step::claim, Step::renew});
    return store;
  }
  if (kind == "etcd") {
    store.threads = 0;
    store.beat = store.first_beat = store.second_beat = 2s;
    store.next_looks = true;
    log(store, {Step::take, Step::join, Step::claim, Step::free, Step::pass, Step::renew});
    return store;
  }
  throw std::out_of_range(kind);
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  names.reserve(kMeasured.size());
  for (const auto& each : kMeasured) names.emplace_back(each.name);
  return names;
}

Store profile(const std::string& name) {
  const auto us = [](double value) { return Duration(static_cast<Duration::rep>(value * 1e3)); };
  auto store = shape_of(name);
  const auto* seen = std::find_if(kMeasured.begin(), kMeasured.end(),
                                  [&](const Measured& each) { return each.name == name; });
  store.client = us(seen->client);
  store.woken = us(seen->woken);
  store.one_way = us(seen->one_way);
  store.push = us(seen->push);
  store.idle = us(seen->idle);
  store.flush = us(seen->flush);
  store.crowding = seen->crowding;
  for (std::size_t i = 0; i < kSteps; ++i) {
    store.costs.at(i).fixed = us(seen->costs.at(i).fixed);
    store.costs.at(i).per_record = us(seen->costs.at(i).per_record);
    store.costs.at(i).per_doubling = us(seen->costs.at(i).per_doubling);
  }
  return store;
}

std::string profiles_measured_on() {
  return "as measured on a virtual machine with 2 cores (docs/scaling.md); --url measures yours";
}

std::string kind_of(const std::string& text) {
  const auto url = interlock::Url::parse(text);
  const auto& scheme = url.scheme;
  if (scheme == "file" || scheme == "etcd") return scheme;
  if (scheme == "etcds") return "etcd";
  if (scheme == "postgres" || scheme == "postgresql") {
    const auto mode = url.query.find("mode");
    return mode != url.query.end() && mode->second == "lease" ? "postgres-lease" : "postgres";
  }
  if (scheme.find("cluster") != std::string::npos) return "redis-cluster";
  if (scheme.starts_with("redlock")) return "redlock";
  if (scheme.starts_with("redis")) return "redis";
  return "";
}

}  // namespace cli::scale
