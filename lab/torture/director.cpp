#include "director.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "crew.hpp"
#include "interlock/client.hpp"
#include "register.hpp"
#include "witness.hpp"

namespace torture {

using namespace std::chrono_literals;
using interlock::Duration;

namespace {

constexpr Duration kLongestTtl = 10s;
// For what takes longer on a busy machine than the promise says: the report tells how long it took.
constexpr Duration kPatience = 60s;

// Begins and heals what the schedule says.
class Nemesis {
 public:
  Nemesis(std::vector<Fault> faults, const Log& log) : faults_(std::move(faults)), log_(log) {}

  [[nodiscard]] std::size_t size() const noexcept { return faults_.size(); }

  void follow(const std::vector<Step>& schedule, Duration lasts) {
    const auto start = now();
    auto next = schedule.begin();
    while (now() < start + lasts.count()) {
      if (next != schedule.end() && now() >= start + next->at.count()) begin(*next++);
      for (auto each = active_.begin(); each != active_.end();) {
        each = now() >= each->second.until ? heal(each) : std::next(each);
      }
      std::this_thread::sleep_for(1ms);
    }
    for (auto each = active_.begin(); each != active_.end();) each = heal(each);
  }

 private:
  struct Active {
    int number;
    std::int64_t until;
  };
  using Actives = std::map<std::size_t, Active>;

  void begin(const Step& step) {
    if (active_.contains(step.fault)) return;
    const auto& fault = faults_[step.fault];
    Random random(step.seed);
    const auto number = ++count_;
    // Written before: it counts from here on, also if it takes a while.
    log_.add("fault", {{"n", number},
                       {"name", fault.name},
                       {"voids", fault.voids},
                       {"disturbs", fault.disturbs},
                       {"brings_back", fault.brings_back}});
    active_[step.fault] = {number, now() + std::max(step.lasts, fault.at_least).count()};
    try {
      log_.add("target", {{"n", number}, {"target", fault.begin(random)}});
    } catch (const std::exception& error) {
      log_.add("skipped", {{"n", number}, {"why", error.what()}});
    }
  }

  Actives::iterator heal(Actives::iterator active) {
    for (const auto until = now() + std::chrono::nanoseconds(20s).count();;) {
      try {
        faults_[active->first].heal();
        break;
      } catch (const std::exception& error) {
        // Another fault may be in the way of this.
        if (now() > until) throw;
        log_.add("note", {{"text", error.what()}});
        std::this_thread::sleep_for(200ms);
      }
    }
    log_.add("healed", {{"n", active->second.number}});
    return active_.erase(active);
  }

  std::vector<Fault> faults_;
  const Log& log_;
  Actives active_;
  int count_ = 0;
};

interlock::Client connect_after_all(const std::string& url) {
  for (const auto until = now() + std::chrono::nanoseconds(kPatience).count();;) {
    try {
      return interlock::connect(url);
    } catch (const interlock::Error& error) {
      if (!error.retryable() || now() > until) throw;
      std::this_thread::sleep_for(50ms);
    }
  }
}

// Asks for each name at once, and writes how long each took.
void probe(const interlock::Client& client, const std::string& prefix, Duration within,
           const Log& log) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t open = 0;
  for (const auto* name :
       {"m0", "m1", "m2", "rw0", "rw1", "h", "identity", "command0", "command1"}) {
    const auto resource = prefix + name;
    const auto asked = now();
    {
      const std::lock_guard lock(mutex);
      ++open;
    }
    client.acquire({{.resource = resource}},
                   {.ttl = 1s, .label = "probe", .retry = interlock::Retry::every(500ms, 1000)},
                   interlock::Wait::for_(within + kPatience),
                   [&, resource, asked](interlock::Attempt attempt) {
                     Json line{{"r", resource},
                               {"within", within.count()},
                               {"took", now() - asked},
                               {"answer", to_string(attempt.outcome())}};
                     if (!attempt) line["text"] = attempt.error().what();
                     log.add("probe", std::move(line));
                     const std::lock_guard lock(mutex);
                     --open;
                     changed.notify_all();
                   });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return open == 0; });
}

// Whoever was killed has left it for ten minutes.
void break_it(const interlock::Client& client, const interlock::ResourceState& resource) {
  for (const auto& holder : resource.holders) client.evict(resource.resource, holder.owner);
}

// All leases have ended or been given back by then.
void look_for_leftovers(const interlock::Client& client, const std::string& prefix,
                        const Log& log) {
  std::string left;
  for (const auto until = now() + std::chrono::nanoseconds(kLongestTtl * 2 + 5s).count();
       now() < until;) {
    left.clear();
    try {
      for (const auto& resource : client.inspect({.prefix = prefix}).resources) {
        if (resource.resource.starts_with(prefix + kLongNames)) break_it(client, resource);
        left += resource.resource + " (" + std::to_string(resource.holders.size()) + " holders, " +
                std::to_string(resource.waiters.size()) + " waiters) ";
      }
    } catch (const interlock::Error& error) {
      left = error.what();
    }
    if (left.empty()) return;
    std::this_thread::sleep_for(50ms);
  }
  log.add("left", {{"what", left}});
}

// Calls that are given up early are asked again while they still go on. Where the store is well, as it comes.
std::optional<Duration> some_timeout(std::uint64_t seed) {
  if (seed % 2 == 0) return std::nullopt;
  return 500ms;
}

std::string with_timeout(const std::string& url, Duration timeout) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") +
         "timeout=" + std::to_string(timeout / 1ms) + "ms";
}

}  // namespace

std::vector<Step> make_schedule(std::uint64_t seed, std::size_t first, std::size_t end,
                                Duration lasts) {
  std::vector<Step> steps;
  if (first == end) return steps;
  Random random(seed);
  const auto up_to = [&](Duration most) {
    return Duration(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most.count())));
  };
  // In some rounds hardly anything goes wrong, so that what does is not taken for a consequence of a fault.
  const Duration gap = random() % 3 == 0 ? 8s : random() % 2 == 0 ? 3s : 1500ms;
  // Short ones mostly, and now and then one that outlives TTLs.
  for (Duration at = 500ms + up_to(gap); at < lasts - 500ms; at += 100ms + up_to(gap)) {
    const auto length = random() % 4 == 0 ? 1s + up_to(4s) : 5ms + up_to(800ms);
    steps.push_back(
        {.at = at, .lasts = length, .fault = first + random() % (end - first), .seed = random()});
  }
  return steps;
}

void hold_round(Topology& topology, const RoundPlan& plan) {
  const auto promise = topology.promise();
  const Log log(plan.directory / "director.log");
  const auto timeout = promise.timeout ? some_timeout(plan.seed) : std::nullopt;
  log.add("round", {{"topology", plan.topology},
                    {"given", plan.given},
                    {"seed", plan.seed},
                    {"processes", plan.processes},
                    {"hands", plan.hands},
                    {"seconds", std::chrono::duration<double>(plan.lasts).count()},
                    {"prefix", plan.prefix},
                    {"timeout", timeout ? Json(timeout->count()) : Json()},
                    {"promise",
                     {{"shortest_ttl", promise.shortest_ttl.count()},
                      {"granted_within", promise.granted_within(kLongestTtl).count()},
                      {"across_processes", promise.across_processes},
                      {"queues", promise.queues},
                      {"detaches", promise.detaches}}}});
  const Witness witness(plan.directory, log);
  const FailoverWitness failovers(topology.candidates(), log);
  const RegisterServer server(plan.directory / "register", log);
  WorkerPlan worker;
  worker.url = timeout ? with_timeout(topology.url(), *timeout) : topology.url();
  worker.prefix = plan.prefix;
  worker.seed = plan.seed;
  worker.self = plan.self;
  worker.hands = plan.hands;
  worker.directory = plan.directory;
  worker.shortest_ttl = promise.shortest_ttl;
  worker.across_processes = promise.across_processes;
  worker.long_ttl = promise.long_ttl;
  worker.survives_no_memory = promise.survives_no_memory && !plan.preload.empty();
  auto crew_plan = plan;
  crew_plan.environment = topology.environment();
  if (promise.across_processes) {
    worker.command = plan.command;
  } else {
    worker.hands *= plan.processes;
    crew_plan.processes = 1;
  }
  // Memory is looked at from within its process alone.
  std::optional<StoreWitness> store_witness;
  if (promise.across_processes) store_witness.emplace(worker.url, plan.prefix + "witness", log);
  Crew crew(crew_plan, worker, log);
  auto faults = topology.faults();
  // In one round of four the store is well, so that nothing is taken for a consequence of its faults.
  const auto first = plan.seed % 4 == 0 ? faults.size() : 0;
  for (auto& fault : crew.faults()) faults.push_back(std::move(fault));
  Nemesis nemesis(std::move(faults), log);
  nemesis.follow(make_schedule(plan.seed, first, nemesis.size(), plan.lasts), plan.lasts);
  log.add("calm");
  if (!promise.across_processes) return crew.end(kPatience);
  std::jthread ending([&] { crew.end(kPatience); });
  const auto client = connect_after_all(topology.direct_url());
  probe(client, plan.prefix, promise.granted_within(kLongestTtl), log);
  ending.join();
  look_for_leftovers(client, plan.prefix, log);
}

}  // namespace torture
