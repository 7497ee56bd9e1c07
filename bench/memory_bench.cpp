// The memory store beside what the standard library has.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "figure.hpp"
#include "interlock/interlock.hpp"
#include "interlock/metrics.hpp"

namespace {

using namespace interlock;
using namespace std::chrono_literals;

constexpr int kRounds = 9;

double cycle_ns(const Mutex& mutex) {
  constexpr int kCycles = 50'000;
  return bench::nanoseconds([&] {
           for (int i = 0; i < kCycles; ++i) auto lease = mutex.acquire();
         }) /
         kCycles;
}

double timed_mutex_ns() {
  constexpr int kCycles = 500'000;
  std::timed_mutex mutex;
  return bench::nanoseconds([&] {
           for (int i = 0; i < kCycles; ++i) {
             mutex.lock();
             mutex.unlock();
           }
         }) /
         kCycles;
}

// Two threads in turns: one gives way while the other sleeps in line. `give` and `take` say how.
// The median time from just before giving to just after taking.
template <class Give, class Take>
double handoff_ns(Give give, Take take) {
  constexpr int kTurns = 2'000;
  std::vector<double> times;
  std::atomic<int> ready{0};
  std::atomic<std::int64_t> given{0};
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  std::thread taker([&] {
    for (int i = 1; i <= kTurns; ++i) {
      ready = i;
      take();
      times.push_back(static_cast<double>(now() - given));
    }
  });
  for (int i = 1; i <= kTurns; ++i) {
    while (ready < i) std::this_thread::yield();
    std::this_thread::sleep_for(50us);  // until it sleeps
    given = now();
    give();
  }
  taker.join();
  return bench::median(std::move(times));
}

double lease_handoff_ns(const Mutex& mutex) {
  std::optional<Lease> mine = mutex.acquire();
  std::mutex back;
  std::condition_variable returned;
  std::optional<Lease> theirs;
  const auto give = [&] {
    mine.reset();
    std::unique_lock lock(back);
    returned.wait(lock, [&] { return theirs.has_value(); });
    mine = std::move(theirs);
    theirs.reset();
  };
  const auto take = [&] {
    auto lease = mutex.acquire();
    const std::lock_guard lock(back);
    theirs = std::move(lease);
    returned.notify_one();
  };
  return handoff_ns(give, take);
}

double condition_handoff_ns() {
  std::mutex mutex;
  std::condition_variable changed;
  bool turn = false;
  const auto give = [&] {
    {
      const std::lock_guard lock(mutex);
      turn = true;
    }
    changed.notify_one();
  };
  const auto take = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return turn; });
    turn = false;
  };
  return handoff_ns(give, take);
}

class Nobody final : public Observer {
 public:
  void on(const Observation&) noexcept override {}
};

}  // namespace

int main() {
  const Client client(memory_store());
  const Mutex mutex(client, "billing:invoice-42");
  bench::show(bench::in_turns(
      {.name = "memory: acquire + release",
       .ours = 0,
       .baseline_name = "std::timed_mutex lock + unlock",
       .baseline = 0,
       .most = 40},
      kRounds, [&] { return cycle_ns(mutex); }, timed_mutex_ns));
  bench::show(bench::in_turns(
      {.name = "memory: handoff to a waiting thread",
       .ours = 0,
       .baseline_name = "std::condition_variable ping-pong",
       .baseline = 0,
       .most = 3},
      kRounds, [&] { return lease_handoff_ns(mutex); }, condition_handoff_ns));
  const Client watched(memory_store(), {.observer = std::make_shared<Nobody>()});
  const Mutex observed(watched, "billing:invoice-42");
  bench::show(bench::in_turns(
      {.name = "memory: cycle with no observer set",
       .ours = 0,
       .baseline_name = "the same with an observer that does nothing",
       .baseline = 0,
       .most = 1.05},
      kRounds, [&] { return cycle_ns(mutex); }, [&] { return cycle_ns(observed); }));
  const Client counting(memory_store(), {.observer = std::make_shared<Metrics>()});
  const Mutex counted(counting, "billing:invoice-42");
  bench::show(bench::in_turns(
      {.name = "memory: cycle with metrics",
       .ours = 0,
       .baseline_name = "the same with no observer set",
       .baseline = 0,
       .most = 1.5},
      kRounds, [&] { return cycle_ns(counted); }, [&] { return cycle_ns(mutex); }));
}
