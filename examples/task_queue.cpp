// Workers share a list of tasks. Each task is claimed by one of them; one that is done stays claimed for
// a while, so that a worker with an old list does not do it again; one that failed is free at once.
#include <interlock/interlock.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "store.hpp"

using namespace std::chrono_literals;

int main() {
  const Store store;
  const auto name = "mail-" + std::to_string(getpid());
  const std::vector<std::string> ids{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
  std::map<std::string, std::atomic<int>> sent;
  for (const auto& id : ids) sent[id] = 0;

  std::vector<interlock::TaskQueue> queues;
  for (int i = 1; i <= 3; ++i) {
    queues.emplace_back(
        interlock::connect(store.url()), name,
        interlock::TaskOptions{
            .ttl = 10s, .label = "worker " + std::to_string(i), .at_least_for = 1min});
  }
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < queues.size(); ++i) {
      workers.emplace_back([&, i] {
        auto mine = ids;
        std::shuffle(mine.begin(), mine.end(), std::minstd_rand(i + 1));
        while (auto task = queues[i].claim_any(mine)) {
          ++sent[task->id()];
          task->done();
        }
      });
    }
  }
  for (const auto& [id, times] : sent) expect(times == 1, "each was sent, and none twice");

  // A worker that comes late learns whose it was.
  auto late = queues[0].claim("7");
  expect(!late && late.worker() && late.worker()->finished, "done, and not to be done again");
  std::cout << "task 7: done by " << late.worker()->label << '\n';

  // One that fails can be tried again at once.
  try {
    (void)queues[0].run("11", [] { throw std::runtime_error("no such mailbox"); });
  } catch (const std::runtime_error& error) {
    std::cout << "task 11: " << error.what() << '\n';
  }
  bool ran = false;
  const bool mine = queues[1].run("11", [&](const std::stop_token& lost) {
    ran = !lost.stop_requested();
    expect(!queues[2].run("11", [] {}), "one at a time");
  });
  expect(mine && ran, "the next worker got it");
}
