#include "profiles.hpp"

#include <algorithm>
#include <stdexcept>

#include "interlock/backend.hpp"

namespace cli::scale {

using namespace std::chrono_literals;

namespace {

void log(Store& store, std::initializer_list<Step> steps) {
  for (const auto step : steps) store.cost(step).logged = true;
}

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
  return {"file", "redis", "redis-cluster", "redlock", "postgres", "postgres-lease", "etcd"};
}

Store profile(const std::string& name) { return shape_of(name); }

std::string profiles_measured_on() { return ""; }

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
