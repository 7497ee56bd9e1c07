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
struct Profiled {
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
    Profiled{.name = "file",
             .client = 2.8,
             .woken = 89.0,
             .one_way = 0.0,
             .push = 125,
             .idle = 0.0,
             .flush = 0.0,
             .crowding = 0.02,
             .costs = {{{24.7, 2.8, 0.0},
                        {40.9, 6.4, 0.0},
                        {38.8, 6.5, 0.0},
                        {29.9, 6.5, 0.0},
                        {26.5, 2.9, 0.0},
                        {41.0, 6.5, 0.0},
                        {30.6, 2.8, 0.0}}}},
    Profiled{.name = "redis",
             .client = 16.8,
             .woken = 55.1,
             .one_way = 4.1,
             .push = 7.4,
             .idle = 5.5,
             .flush = 0.0,
             .crowding = 0.06,
             .costs = {{{25.5, 0.0, 0.0},
                        {28.4, 0.0, 2.2},
                        {4.3, 0.0, 2.2},
                        {23.9, 0.0, 2.2},
                        {6.4, 0.0, 0.0},
                        {20.0, 0.0, 2.2},
                        {12.5, 0.0, 0.0}}}},
    Profiled{.name = "redis-cluster",
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

    Profiled{.name = "redlock",
             .client = 86.8,
             .woken = 0.0,
             .one_way = 0.0,
             .push = 28.6,
             .idle = 0.0,
             .flush = 0.0,
             .crowding = 0.00,
             .costs = {{{51.4, 0.0, 0.0},
                        {56.3, 0.0, 0.0},
                        {42.3, 0.0, 0.0},
                        {52.0, 0.0, 0.0},
                        {31.5, 0.0, 0.0},
                        {37.1, 0.0, 0.0},
                        {87.4, 0.0, 0.0}}}},
    Profiled{.name = "postgres",
             .client = 31.1,
             .woken = 103,
             .one_way = 0.0,
             .push = 392,
             .idle = 0.0,
             .flush = 0.0,
             .crowding = 0.13,
             .costs = {{{80.3, 0.1, 0.0},
                        {370, 0.1, 31.4},
                        {101, 0.0, 31.4},
                        {348, 0.2, 31.4},
                        {69.9, 0.0, 0.0},
                        {102, 0.0, 31.4},
                        {225, 0.0, 0.0}}}},
    Profiled{.name = "postgres-lease",
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

    Profiled{.name = "etcd",
             .client = 124,
             .woken = 495,
             .one_way = 42.3,
             .push = 1763,
             .idle = 165,
             .flush = 63.6,
             .crowding = 0.00,
             .costs = {{{197, 1.9, 0.0},
                        {272, 1.9, 0.0},
                        {322, 0.8, 0.0},
                        {35.0, 0.0, 0.0},
                        {153, 0.3, 0.0},
                        {185, 0.3, 0.0},
                        {208, 0.0, 0.0}}}},
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
                                  [&](const Profiled& each) { return each.name == name; });
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
