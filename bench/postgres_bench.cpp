// The Postgres store beside bare libpq on the same server, which it starts itself. The server's
// sessions have a core of their own, ours and libpq's alike: they inherit it from the server, so it is
// put there before anybody connects.
#include <atomic>
#include <memory>
#include <thread>

#include "bare/postgres.hpp"
#include "crowd.hpp"
#include "figure.hpp"
#include "interlock/interlock.hpp"
#include "servers/postgres_server.hpp"

namespace {

using namespace interlock;
using namespace bench;
using namespace std::chrono_literals;

Figure cycle(const Client& locks, BarePostgres& bare, const char* name, double most) {
  const Mutex mutex(locks, "billing:invoice-42");
  return bench::in_turns(
      {.name = name,
       .ours = 0,
       .baseline_name = "libpq: pg_try_advisory_lock, pg_advisory_unlock",
       .baseline = 0,
       .most = most},
      15, [&] { return per_cycle(1000, [&] { auto lease = mutex.acquire(); }); },
      [&] { return per_cycle(1000, [&] { bare.cycle(); }); });
}

void show_handoff(const std::string& url, BarePostgres& bare, const std::string& mode) {
  bench::show(bench::in_turns(
      {.name = "postgres: handoff to another process, " + mode,
       .ours = 0,
       .baseline_name = "SELECT 1",
       .baseline = 0,
       .most = 4},
      7, [&] { return handoff_ns(url + "?mode=" + mode); },
      [&] { return bench::at_times([&] { bare.ask("SELECT 1"); }); }));
}

void show_waiters(const std::string& url, BarePostgres& bare, const std::string& mode) {
  const auto connections = [&] {
    return std::stoi(
        bare.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'interlock%'"));
  };
  const int before = connections();
  int used = 0;
  {
    const auto locks = connect(url + "?mode=" + mode);
    const Mutex mutex(locks, "crowded");
    auto held = mutex.acquire();
    std::atomic<int> served = 0;
    for (int i = 0; i < 2000; ++i)
      mutex.acquire(Wait::forever(), [&](const Attempt&) { ++served; });
    while (locks.inspect({.resources = {"crowded"}}).resources.at(0).waiters.size() < 2000)
      std::this_thread::sleep_for(10ms);
    used = connections() - before;
    held.release();
    while (served < 2000) std::this_thread::sleep_for(10ms);
  }
  std::printf("%-46s %10d   %-44s %10d   %6s (bar <= 4) %s\n",
              ("postgres: connections of 2,000 waiters, " + mode).c_str(), used, "at most", 4, "",
              used <= 4 ? "ok" : "MISSES THE BAR");
}

}  // namespace

/// With an argument: only the figures that have it in their names.
int main(int argc, char** argv) {
  const auto wanted = [&](std::string_view name) {
    return argc < 2 || name.find(argv[1]) != std::string_view::npos;
  };
  servers::PostgresServer server;
  const Apart apart(server.process().pid());
  const auto url = server.url();
  BarePostgres bare(url);
  {
    // The schema is there before anything is measured.
    const auto first = Mutex(connect(url), "first").acquire();
  }
  // These fork.
  for (const std::string mode : {"advisory", "lease"}) {
    if (wanted("handoff")) show_handoff(url, bare, mode);
  }
  if (wanted("cycle")) {
    bench::show(cycle(connect(url), bare, "postgres: acquire + release, fence and table", 1.3));
    bench::show(
        cycle(connect(url + "?mode=lease"), bare, "postgres: acquire + release, lease mode", 5));
  }
  for (const std::string mode : {"advisory", "lease"}) {
    if (wanted("waiters")) show_waiters(url, bare, mode);
  }
}
