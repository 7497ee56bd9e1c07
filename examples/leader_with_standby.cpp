// A service with one leader and two standbys, each a process. The leader is killed, and a standby takes
// over; that one is asked to end, and hands over before it does.
#include <interlock/interlock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <set>
#include <string>

#include "store.hpp"

using namespace std::chrono_literals;

namespace {

struct Report {
  pid_t pid;
  std::uint64_t term;
};

// One process of the service. It ends in order when it gets SIGTERM.
int serve(const std::string& url, const std::string& cluster, int reports) {
  const interlock::Termination termination;
  interlock::LeaderElection election(
      interlock::connect(url), cluster,
      {.ttl = 3s,
       .label = "process " + std::to_string(getpid()),
       .on_gain =
           [&](interlock::Fence term) {  // here the work of a leader begins
             const Report report{.pid = getpid(), .term = term.value};
             expect(write(reports, &report, sizeof(report)) == sizeof(report), "reported");
           },
       .on_loss = [](const std::string&) { /* and here it ends */ }});
  election.start();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait(lock, termination.token(), [] { return false; });
  return 0;
}

}  // namespace

int main() {
  const Store store;
  const auto cluster = "example-" + std::to_string(getpid());
  std::array<int, 2> reports{};
  expect(pipe(reports.data()) == 0, "a pipe");
  std::set<pid_t> processes;
  for (int i = 0; i < 3; ++i) {
    const auto child = fork();  // before there is a client: a child connects for itself
    if (child == 0) _exit(serve(store.url(), cluster, reports[1]));
    processes.insert(child);
  }
  close(reports[1]);

  Report last{};
  for (const int signal : {SIGKILL, SIGTERM, SIGTERM}) {
    Report next{};
    expect(read(reports[0], &next, sizeof(next)) == sizeof(next), "somebody leads");
    std::cout << "process " << next.pid << " leads in term " << next.term << std::endl;
    expect(next.pid != last.pid && next.term > last.term, "another one, in a later term");
    last = next;
    kill(next.pid, signal);
    waitpid(next.pid, nullptr, 0);
    processes.erase(next.pid);
  }
  expect(processes.empty(), "each led once");
}
