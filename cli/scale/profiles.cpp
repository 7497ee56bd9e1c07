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

// ---- measured by bench/scaling, in microseconds
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
constexpr std::array kMeasured = {
    Measured{.name = "file",
             .client = 2.7,
             .woken = 111,
             .one_way = 0.0,
             .push = 82.1,
             .idle = 0.0,
             .flush = 0.0,
             .crowding = 0.04,
             .costs = {{{23.1, 2.6, 0.0},
                        {39.5, 5.9, 0.0},
                        {38.9, 5.9, 0.0},
                        {27.6, 5.9, 0.0},
                        {24.8, 2.7, 0.0},
                        {44.8, 6.0, 0.0},
                        {26.0, 2.7, 0.0}}}},
    Measured{.name = "redis",
             .client = 15.0,
             .woken = 90.2,
             .one_way = 19.0,
             .push = 36.7,
             .idle = 30.9,
             .flush = 0.0,
             .crowding = 0.04,
             .costs = {{{18.4, 0.0, 0.0},
                        {28.7, 0.0, 0.0},
                        {22.9, 0.0, 0.0},
                        {26.0, 0.0, 0.0},
                        {11.6, 0.0, 0.0},
                        {20.9, 0.0, 0.0},
                        {12.0, 0.0, 0.0}}}},
    Measured{.name = "redis-cluster",
             .client = 16.4,
             .woken = 101,
             .one_way = 16.3,
             .push = 75.2,
             .idle = 28.0,
             .flush = 0.0,
             .crowding = 0.01,
             .costs = {{{21.9, 0.1, 0.0},
                        {31.2, 0.1, 0.0},
                        {27.2, 0.0, 0.0},
                        {29.2, 0.1, 0.0},
                        {15.3, 0.0, 0.0},
                        {26.6, 0.0, 0.0},
                        {15.1, 0.1, 0.0}}}},
    Measured{.name = "redlock",
             .client = 43.0,
             .woken = 128,
             .one_way = 20.3,
             .push = 85.7,
             .idle = 28.0,
             .flush = 0.0,
             .crowding = 0.18,
             .costs = {{{55.6, 0.2, 0.0},
                        {98.4, 0.2, 0.0},
                        {59.7, 0.2, 0.0},
                        {61.4, 0.0, 0.0},
                        {34.8, 0.0, 0.0},
                        {58.5, 0.0, 0.0},
                        {48.5, 0.0, 0.0}}}},
    Measured{.name = "postgres",
             .client = 29.2,
             .woken = 80.1,
             .one_way = 11.0,
             .push = 536,
             .idle = 22.5,
             .flush = 0.0,
             .crowding = 0.05,
             .costs = {{{86.6, 0.3, 0.0},
                        {321, 7.9, 0.0},
                        {97.9, 7.6, 0.0},
                        {319, 7.8, 0.0},
                        {71.8, 0.0, 0.0},
                        {98.2, 7.6, 0.0},
                        {177, 0.1, 0.0}}}},
    Measured{.name = "postgres-lease",
             .client = 33.1,
             .woken = 117,
             .one_way = 0.7,
             .push = 1154,
             .idle = 30.9,
             .flush = 144,
             .crowding = 0.39,
             .costs = {{{124, 0.0, 0.0},
                        {558, 5.7, 0.0},
                        {177, 6.1, 0.0},
                        {274, 6.1, 0.0},
                        {124, 0.2, 0.0},
                        {159, 6.0, 0.0},
                        {262, 0.1, 0.0}}}},
    Measured{.name = "etcd",
             .client = 160,
             .woken = 556,
             .one_way = 163,
             .push = 815,
             .idle = 409,
             .flush = 144,
             .crowding = 0.05,
             .costs = {{{182, 4.2, 0.0},
                        {232, 4.2, 0.0},
                        {460, 4.5, 0.0},
                        {137, 0.0, 0.0},
                        {156, 0.5, 0.0},
                        {78.7, 0.5, 0.0},
                        {313, 0.0, 0.0}}}},
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
    store.cost(Step::claim).trips = 2;
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
