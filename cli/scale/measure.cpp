#include "measure.hpp"

#include <algorithm>
#include <cmath>

#include "profiles.hpp"

namespace cli::scale {

using namespace std::chrono_literals;

namespace {

Duration scaled(Duration time, double by) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * by));
}

Duration at_least(Duration least, Duration time) { return std::max(least, time); }

double calls(const Run& run) { return run.calls_per_cycle * static_cast<double>(run.cycles); }

/// Finds the time at which the model does as many cycles as the real processes did. More time, fewer
/// cycles.
void fit(const Store& store, const std::function<void(Duration)>& set, Duration most,
         const Workload& work, double rate) {
  Duration low{};
  auto high = most;
  for (int i = 0; i < 18; ++i) {
    const auto middle = (low + high) / 2;
    set(middle);
    (predict(store, work).cycles_per_second > rate ? low : high) = middle;
  }
  set((low + high) / 2);
}

/// The best of three.
std::vector<Crowded> best_crowded(const std::string& url) {
  auto best = run_crowded(url, {4, 200});
  for (int i = 1; i < 3; ++i) {
    const auto again = run_crowded(url, {4, 200});
    for (std::size_t s = 0; s < best.size(); ++s) {
      for (const auto time :
           {&Crowded::join, &Crowded::beat, &Crowded::claim, &Crowded::pass, &Crowded::renew})
        best[s].*time = std::min(best[s].*time, again[s].*time);
    }
  }
  return best;
}

Duration slope(const std::vector<Crowded>& seen, Duration Crowded::*time) {
  const auto& few = seen.front();
  const auto& many = seen.back();
  return at_least(0ns, (many.*time - few.*time) / std::max(1, many.waiters - few.waiters));
}

}  // namespace

Workload here(Workload work) {
  work.client_cores = cores_here();
  work.one_machine = true;
  return work;
}

Measured measure(const std::string& url, const std::function<void(const std::string&)>& say) {
  Measured measured;
  auto& store = measured.store;
  store = shape_of(kind_of(url));
  const auto note = [&](const Run& run) {
    measured.outside = std::max(measured.outside, run.outside);
    return run;
  };
  say("one process");
  Workload alone{.processes = 1, .duration = 700ms};
  const auto one = note(best_run(url, alone));
  say("several, with a lock each");
  Workload busy{.processes = 8 * cores_here(), .duration = 1s};
  const auto many = note(best_run(url, busy));
  Workload busier = busy;
  busier.processes = 3 * busy.processes;
  const auto most = note(best_run(url, busier));
  say("three, with one lock");
  Workload pair{.processes = 3, .locks = 1, .duration = 1s};
  const auto hot = note(best_run(url, pair));
  say("many, with one lock");
  Workload line{.processes = 24, .locks = 1, .duration = 1s};
  const auto long_line = note(best_run(url, line));
  say("one, with a long line");
  const auto crowded = best_crowded(url);

  measured.server_here = many.server_seen || store.on_clients;
  const auto sum_of = [&](const Run& run, Duration Run::*cpu) {
    return scaled(run.*cpu, 1 / std::max(1.0, calls(run)));
  };
  store.crowding_from = busy.processes;
  store.crowding =
      std::clamp((many.cycles_per_second / most.cycles_per_second - 1) / std::log2(3.0), 0.0, 0.5);
  const auto client = sum_of(many, &Run::client_cpu);
  // Without a look at the server, what it can do at most tells.
  const auto server =
      many.server_seen ? sum_of(many, &Run::server_cpu) / store.votes
                       : Duration(static_cast<Duration::rep>(
                             1e9 / std::max(1.0, many.cycles_per_second * many.calls_per_cycle)));

  // Calls differ in what the server does, as their callers do the same and the way is the same.
  const auto than_take = [&](Duration time) { return time - one.call(Step::take).median; };
  const auto set = [&](Step step, Duration fixed, Duration per_record) {
    store.cost(step).fixed = at_least(server / 5, fixed);
    store.cost(step).per_record = per_record;
  };
  const auto apart = than_take(one.call(Step::free).median) / 2;
  if (store.on_clients) {
    // All that a caller does is the work, nearly.
    store.client = client / 10;
    const auto rest = client - store.client;
    set(Step::take, rest - apart, slope(crowded, &Crowded::join));
    set(Step::free, rest + apart, slope(crowded, &Crowded::pass));
  } else {
    store.client = client;
    const auto logged = store.cost(Step::free).logged == store.cost(Step::take).logged;
    const auto differ = logged ? std::clamp(apart, -server * 3 / 4, server * 3 / 4) : 0ns;
    set(Step::take, server - differ, slope(crowded, &Crowded::join));
    set(Step::free, server + differ, slope(crowded, &Crowded::pass));
    if (many.server_seen)
      store.idle = at_least(0ns, sum_of(one, &Run::server_cpu) / store.votes - server);
  }
  // Each call's time on a short line, without what the line itself costs.
  const auto take = store.cost(Step::take).fixed - one.call(Step::take).median;
  const auto free = store.cost(Step::free).fixed - one.call(Step::free).median;
  const auto set_by_time = [&](Step step, Duration base, Duration Crowded::*time) {
    const auto each = slope(crowded, time);
    const auto& few = crowded.front();
    set(step, base + few.*time - each * few.records(step), each);
  };
  set_by_time(Step::join, take, &Crowded::join);
  set_by_time(Step::claim, take, &Crowded::claim);
  set_by_time(Step::beat, take, &Crowded::beat);
  set_by_time(Step::renew, take, &Crowded::renew);
  set_by_time(Step::pass, free, &Crowded::pass);

  // How the CPU of a contended cycle is spread over its calls, the times above tell; how much it is
  // in all, the CPU itself.
  const auto cycles = static_cast<double>(std::max<std::uint64_t>(hot.cycles, 1));
  const auto cycle_cpu =
      scaled(store.on_clients ? hot.client_cpu : hot.server_cpu / store.votes, 1 / cycles) -
      scaled(store.idle, hot.calls_per_cycle);
  const auto beats = static_cast<double>(hot.call(Step::beat).count) / cycles;
  const auto by_time = store.cost(Step::join).fixed + store.cost(Step::claim).fixed +
                       store.cost(Step::pass).fixed + scaled(store.cost(Step::beat).fixed, beats);
  if (measured.server_here) {
    const auto by = std::clamp(static_cast<double>(cycle_cpu.count()) /
                                   static_cast<double>(std::max<Duration::rep>(1, by_time.count())),
                               0.5, 1.0);
    for (const auto step : {Step::join, Step::claim, Step::pass, Step::beat})
      store.cost(step).fixed = scaled(store.cost(step).fixed, by);
  }
  store.woken =
      at_least(0ns, scaled(hot.client_cpu, 1 / cycles) - scaled(store.client, hot.calls_per_cycle) -
                        (store.on_clients ? by_time : 0ns));

  // What can't be seen by itself is fitted: the way there, the disk, the wake-up.
  const auto on_one = [&](Workload work) {
    work.duration = std::max<Duration>(500ms, work.duration / 2);
    return here(work);
  };
  const auto logs = std::any_of(store.costs.begin(), store.costs.end(),
                                [](const Cost& cost) { return cost.logged; });
  if (logs && !store.cost(Step::free).logged) {
    // A release takes the same way, and is not waited for.
    store.flush = at_least(0ns, one.call(Step::take).median - one.call(Step::free).median);
    fit(
        store, [&](Duration time) { store.one_way = time; }, 20ms, on_one(alone),
        one.cycles_per_second);
  } else if (logs) {
    // A heartbeat takes the same way, and changes nothing that has to be on disk.
    store.one_way =
        at_least(0ns, crowded.front().beat - store.client - store.cost(Step::beat).fixed) / 2;
    fit(
        store, [&](Duration time) { store.flush = time; }, 50ms, on_one(alone),
        one.cycles_per_second);
  } else if (!store.on_clients) {
    fit(
        store, [&](Duration time) { store.one_way = time; }, 20ms, on_one(alone),
        one.cycles_per_second);
  }
  fit(
      store, [&](Duration time) { store.push = time; }, 20ms, on_one(pair), hot.cycles_per_second);
  // Records of many processes may cost more than those of one.
  constexpr double kClearly = 0.85;
  if (long_line.cycles_per_second > kClearly * predict(store, on_one(line)).cycles_per_second)
    return measured;
  const auto costs = store.costs;
  fit(
      store,
      [&](Duration time) {
        for (const auto step : {Step::join, Step::claim, Step::pass, Step::beat}) {
          // A file is read and written as a whole; servers find their way by an index.
          auto& cost = store.cost(step);
          if (store.on_clients) {
            cost.per_record = costs.at(static_cast<std::size_t>(step)).per_record + time;
          } else {
            cost.per_doubling = time;
          }
        }
      },
      1ms, on_one(line), long_line.cycles_per_second);
  return measured;
}

}  // namespace cli::scale
