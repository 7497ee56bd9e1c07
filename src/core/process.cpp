#include "core/process.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/contain.hpp"
#include "core/quiet_thread.hpp"

namespace interlock::core {

namespace {

std::atomic<std::uint64_t>& epoch() noexcept {
  static std::atomic<std::uint64_t> value{[] {
    pthread_atfork(nullptr, nullptr, [] { epoch().fetch_add(1, std::memory_order_relaxed); });
    return std::uint64_t{1};
  }()};
  return value;
}

constexpr int kMostRegistrations = 16;
constexpr auto kLongestEnd = std::chrono::seconds(5);

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<AtExit>> objects;
  std::vector<std::shared_ptr<AtExit>> kept;
  int elsewhere = 0;
  std::condition_variable nothing_elsewhere;
  std::uint64_t epoch = fork_epoch();
};

// Never destroyed: clients may outlive every other static object.
Registry& registry() {
  static auto* const the_registry = new Registry;
  return *the_registry;
}

void run_at_exit() {
  auto& all = registry();
  if (all.epoch != fork_epoch()) return;  // a forked child holds nothing
  std::vector<std::weak_ptr<AtExit>> objects;
  {
    const std::lock_guard lock(all.mutex);
    objects.swap(all.objects);
  }
  for (const auto& weak : objects) {
    if (const auto object = weak.lock()) object->at_exit();
  }
  std::unique_lock lock(all.mutex);
  all.nothing_elsewhere.wait_for(lock, kLongestEnd, [&] { return all.elsewhere == 0; });
}

}  // namespace

std::uint64_t fork_epoch() noexcept { return epoch().load(std::memory_order_relaxed); }

void call_at_exit(const std::shared_ptr<AtExit>& object) {
  // Handlers run in the reverse order: ours has to come before those of the libraries that are in use
  // by now. The first one to run does it all.
  static std::atomic<int> left{kMostRegistrations};
  if (left > 0 && left-- > 0) (void)std::atexit(run_at_exit);
  auto& all = registry();
  if (all.epoch != fork_epoch()) {  // the child's own clients; its copy of the mutex may be locked
    auto* const fresh = new (&all) Registry;
    fresh->epoch = fork_epoch();
  }
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.objects, [](const auto& weak) { return weak.expired(); });
  all.objects.push_back(object);
}

void keep_to_the_end(std::shared_ptr<AtExit> object) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.kept.push_back(std::move(object));
}

void elsewhere(std::function<void()> work) {
  auto& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    ++all.elsewhere;
  }
  const auto over = [&all] {
    const std::lock_guard lock(all.mutex);
    --all.elsewhere;
    all.nothing_elsewhere.notify_all();
  };
  const bool begun = contain([&] {
    quiet_thread([over, work = std::move(work)] {
      work();
      over();
    }).detach();
  });
  if (!begun) over();
}

}  // namespace interlock::core
