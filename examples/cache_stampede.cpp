// Three instances of a tile server share a cache. When a tile is missing, one of them renders it, and
// everybody who wants it meanwhile waits for that one.
#include <interlock/interlock.hpp>

#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

// Stands for what the instances share: Redis, a directory, a table.
class TileCache {
 public:
  interlock::Cache functions() {
    return {.get = [this](const std::string& key) -> std::optional<std::string> {
              const std::lock_guard lock(mutex_);
              const auto it = tiles_.find(key);
              if (it == tiles_.end()) return std::nullopt;
              return it->second;
            },
            .put =
                [this](const std::string& key, const std::string& tile) {
                  const std::lock_guard lock(mutex_);
                  tiles_[key] = tile;
                },
            .remove =
                [this](const std::string& key) {
                  const std::lock_guard lock(mutex_);
                  tiles_.erase(key);
                }};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> tiles_;
};

}  // namespace

int main() {
  const interlock::MemoryStore store;  // in real life: connect("redis://…") in each instance
  TileCache cache;
  std::atomic<int> rendered = 0;
  const auto render = [&](const std::string& key) {
    std::this_thread::sleep_for(100ms);
    return "tile " + key + ", version " + std::to_string(++rendered);
  };
  std::vector<interlock::SingleFlight> instances;
  for (int i = 0; i < 3; ++i)
    instances.emplace_back(interlock::Client(store.open()), cache.functions(), render);

  // Sixty requests for the same tile at once.
  {
    std::vector<std::jthread> requests;
    for (int i = 0; i < 60; ++i) {
      requests.emplace_back([&, i] {
        const auto tile = instances[static_cast<std::size_t>(i % 3)].get("7/66/42");
        expect(tile == "tile 7/66/42, version 1", "everybody gets the one that was rendered");
      });
    }
  }
  std::cout << "60 requests, rendered " << rendered << " time\n";
  expect(rendered == 1, "once");

  // The map has changed: render it anew. The other instances see it, too.
  std::cout << instances[0].force("7/66/42") << '\n';
  expect(instances[1].get("7/66/42") == "tile 7/66/42, version 2", "the new one");

  // Nobody waits longer than they want to, and the tile is rendered all the same.
  const auto none = instances[2].try_get_for("8/1/1", 10ms);
  std::cout << (none ? *none : "not yet") << '\n';
  std::cout << instances[2].get("8/1/1") << '\n';

  // A tile is good for a minute. For another hour the old one is given out at once, and a new one is
  // rendered in the background.
  std::atomic<int> minutes = 0;
  interlock::SingleFlight aging(
      interlock::Client(store.open()), cache.functions(), render,
      {.prefix = "aging:", .fresh_for = 1min, .stale_for = 1h, .now = [&] {
         return std::chrono::system_clock::time_point(24h * 20'000 + minutes.load() * 1min);
       }});
  const auto first = aging.get("9/0/0");
  minutes = 2;
  expect(aging.get("9/0/0") == first, "the old one, without waiting");
  while (aging.get("9/0/0") == first) std::this_thread::sleep_for(1ms);
  std::cout << aging.get("9/0/0") << ", in the background\n";
}
