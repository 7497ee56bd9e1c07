// Several nodes compact the partitions of a table. A partition that somebody else is at is skipped: there
// is always another one to do.
// (Row 0.8 of tests/requirements.md.)
#include <interlock/interlock.hpp>

#include <array>
#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "store.hpp"

using namespace std::chrono_literals;

namespace {

struct Partition {
  std::atomic<int> segments = 8;
  std::atomic<int> at_work = 0;
  std::atomic<int> compactions = 0;
};

using Table = std::array<Partition, 6>;

// Many segments become one. Two at the same time would lose data.
bool compact(Partition& partition, const std::stop_token& lost) {
  expect(partition.at_work.fetch_add(1) == 0, "one at a time");
  while (partition.segments > 1 && !lost.stop_requested()) {
    std::this_thread::sleep_for(1ms);
    --partition.segments;
  }
  ++partition.compactions;
  --partition.at_work;
  return partition.segments == 1;
}

struct Result {
  int compacted = 0;
  int skipped = 0;
};

Result go_through(const interlock::Client& locks, const std::string& node, Table& table) {
  Result result;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const interlock::Mutex lock(locks, "compaction:partition:" + std::to_string(i),
                                {.ttl = 5min, .label = node});
    auto lease = lock.try_acquire();
    if (!lease) {
      ++result.skipped;
    } else if (table[i].segments > 1) {  // looked at only now: somebody may just be done with it
      if (compact(table[i], lease->lost())) ++result.compacted;
    }
  }
  return result;
}

}  // namespace

int main() {
  const Store store;
  Table table;
  std::atomic<int> compacted = 0;
  std::atomic<int> skipped = 0;
  {
    std::vector<std::jthread> nodes;
    for (int i = 1; i <= 3; ++i) {
      nodes.emplace_back([&, i] {
        const auto locks = interlock::connect(store.url());
        const auto result = go_through(locks, "node " + std::to_string(i), table);
        compacted += result.compacted;
        skipped += result.skipped;
      });
    }
  }
  std::cout << compacted << " compacted, " << skipped << " times somebody else was at it\n";
  expect(compacted == static_cast<int>(table.size()), "all of them");
  for (const auto& partition : table) {
    expect(partition.segments == 1 && partition.compactions == 1, "each of them once");
  }
}
