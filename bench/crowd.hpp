// Many processes on one lock, and one thread that takes and frees one over and over; beside a server
// that has a core of its own.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "figure.hpp"
#include "interlock/interlock.hpp"

namespace bench {

inline double per_cycle(int cycles, const std::function<void()>& cycle) {
  return nanoseconds([&] {
           for (int i = 0; i < cycles; ++i) cycle();
         }) /
         cycles;
}

/// While it exists, the server has a core of its own, as if it were another machine. Where the
/// scheduler puts it else decides more about a round trip than what is measured.
class Apart {
 public:
  explicit Apart(pid_t server) : server_(server) {
    if (::sched_getaffinity(0, sizeof(all_), &all_) != 0 || CPU_COUNT(&all_) < 2) return;
    int first = 0;
    while (!CPU_ISSET(first, &all_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    auto others = all_;
    CPU_CLR(first, &others);
    put(one, others);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;
  ~Apart() { put(all_, all_); }

 private:
  void put(const cpu_set_t& server, const cpu_set_t& others) const {
    (void)::sched_setaffinity(server_, sizeof(server), &server);
    (void)::sched_setaffinity(0, sizeof(others), &others);
  }

  pid_t server_;
  cpu_set_t all_{};
};

struct Hold {
  pid_t by;
  std::int64_t from;
  std::int64_t to;
};

inline std::int64_t now_ns() { return interlock::BootClock::now().time_since_epoch().count(); }

// Processes that all want one lock; all holds in their order.
using Section = std::function<void(const std::function<void()>& busy)>;
inline std::vector<Hold> crowd(int processes,
                               const std::function<void(const Section& section)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      work([&](const auto& busy) {
        Hold hold{.by = ::getpid(), .from = now_ns(), .to = 0};
        busy();
        hold.to = now_ns();
        [[maybe_unused]] const auto put = ::write(ends[1], &hold, sizeof hold);
      });
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(ends[1]);
  std::vector<Hold> holds;
  for (Hold hold{}; ::read(ends[0], &hold, sizeof hold) == sizeof hold;) holds.push_back(hold);
  for (const auto child : children) ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  std::sort(holds.begin(), holds.end(),
            [](const Hold& a, const Hold& b) { return a.from < b.from; });
  return holds;
}

// From the end of a hold to the begin of the next one, in another process that waits already. Who has
// released does something else for a moment: it is not in the way.
inline double handoff_ns(const std::string& url) {
  const auto holds = crowd(2, [&](const auto& section) {
    const auto locks = interlock::connect(url);
    const interlock::Mutex mutex(locks, "baton");
    for (int i = 0; i < 200; ++i) {
      {
        auto lease = mutex.acquire();
        section([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < holds.size(); ++i)
    gaps.push_back(static_cast<double>(holds[i].from - holds[i - 1].to));
  return median(std::move(gaps));
}

// A call, made as often as there are handoffs above: a server that is asked more often answers sooner.
inline double at_times(const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    times.push_back(nanoseconds(call));
  }
  return median(std::move(times));
}

// How often a second it goes from one process to another.
inline double handoff_rate(const std::vector<Hold>& holds) {
  double count = 0;
  for (std::size_t i = 1; i < holds.size(); ++i) count += holds[i].by != holds[i - 1].by ? 1 : 0;
  return count / static_cast<double>(holds.back().from - holds.front().from) * 1e9;
}

}  // namespace bench
