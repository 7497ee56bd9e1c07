// Many readers or one writer, and how one turns into the other.
#include <interlock/interlock.hpp>

#include <iostream>
#include <shared_mutex>
#include <thread>

#include "expect.hpp"

using namespace std::chrono_literals;

int main() {
  auto locks = interlock::connect("memory:");
  interlock::RwLock config(locks, "config");

  {
    auto one = config.read();
    auto two = config.read();
    expect(one && two, "readers read together");
    expect(!config.try_write(), "a writer has to wait for both");
  }

  // Everybody queues: a writer that waits is not starved by readers that come later.
  {
    auto reader = config.read();
    std::jthread writer([&] { auto lease = config.write(); });
    while (locks.inspect({.resources = {"config"}}).resources.front().waiters.empty()) {
      std::this_thread::sleep_for(1ms);
    }
    expect(!config.try_read(), "a waiting writer holds back later readers");
    reader.release();
  }

  // Write, then go on reading what was written, with no gap for another writer in between.
  {
    auto lease = config.write();
    expect(lease.downgrade(), "a writer can always become a reader");
    expect(static_cast<bool>(config.try_read()), "others read, too, now");
  }

  // Read first, and write only if needed. Two that try don't wait for each other.
  {
    auto first = config.read();
    auto second = config.read();
    expect(!first.try_upgrade(), "another reader is in the way");
    expect(static_cast<bool>(first), "and the shared lease is still there");
    second.release();
    const auto before = first.fence();
    expect(first.try_upgrade(), "alone, it becomes the writer");
    expect(first.fence() > before, "that is a new grant, with a new fence");
  }

  // The std spelling.
  {
    std::shared_lock one(config);
    std::shared_lock two(config, std::try_to_lock);
    expect(two.owns_lock(), "shared");
    std::unique_lock writer(config, 10ms);
    expect(!writer.owns_lock(), "not while there are readers");
  }
  std::cout << "readers and writers got along\n";
}
