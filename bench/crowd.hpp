// Many processes on one lock, and one thread that takes and frees one over and over.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
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

struct Hold {
  std::int64_t from;
  std::int64_t to;
};

inline std::int64_t now_ns() { return interlock::BootClock::now().time_since_epoch().count(); }

// Processes that all want one lock and hold it for `busy`; all holds in their order.
inline std::vector<Hold> crowd(
    int processes, int rounds, interlock::Duration busy,
    const std::function<void(int rounds, const std::function<void()>& section)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      work(rounds, [&] {
        Hold hold{.from = now_ns(), .to = 0};
        while (now_ns() - hold.from < busy.count()) {
        }
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

inline double handoff_ns(const std::string& url, int processes) {
  const auto holds = crowd(processes, 400 / processes, std::chrono::microseconds(200),
                           [&](int rounds, const auto& section) {
                             const auto locks = interlock::connect(url);
                             const interlock::Mutex mutex(locks, "baton");
                             for (int i = 0; i < rounds; ++i) {
                               auto lease = mutex.acquire();
                               section();
                             }
                           });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < holds.size(); ++i)
    gaps.push_back(static_cast<double>(holds[i].from - holds[i - 1].to));
  return median(std::move(gaps));
}

}  // namespace bench
