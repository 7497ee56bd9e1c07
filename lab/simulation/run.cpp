#include "run.hpp"

#include <algorithm>
#include <memory>

#include "faults.hpp"
#include "trace.hpp"
#include "worker.hpp"

namespace simulation {

namespace {

constexpr auto kEpoch = 1'700'000'000s;  // of the clocks

interlock::Traits traits_of(Duration call_timeout) {
  interlock::Traits traits;
  traits.name = "redlock";
  traits.where = "redlock://simulated";
  traits.slots = false;
  traits.call_timeout = call_timeout;
  traits.drift_rate = 0.01;
  return traits;
}

class Simulation {
 public:
  explicit Simulation(const Options& options);
  Result run();

 private:
  void build();
  void heal();
  void judge();
  [[nodiscard]] bool may_take_long() const;

  const Options& options_;
  Random random_;
  World world_;
  Path::Weather weather_;
  interlock::Traits traits_;
  Worker::Habits habits_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Checks> checks_;
  std::unique_ptr<Faults> faults_;
  Trouble trouble_;
  std::size_t to_probe_ = 0;
  Time healed_{};
};

Simulation::Simulation(const Options& options)
    : options_(options),
      random_(options.seed, 2),
      world_(options.seed, options.traces),
      trouble_(options.trouble) {
  static constexpr Duration kTimeouts[] = {500ms, 1s, 2s, 5s};
  traits_ = traits_of(kTimeouts[random_.below(4)]);
  habits_.long_ttl = random_.one_in(4);
  habits_.identities = random_.one_in(4);
  habits_.changes = !random_.one_in(3);
  habits_.resources = 1 + random_.below(2);
  static constexpr Duration kSlowest[] = {500us, 2ms, 8ms};
  weather_.most = kSlowest[random_.below(3)];
  if (trouble_ == Trouble::any) {
    static constexpr Trouble kTroubles[] = {Trouble::all, Trouble::all, Trouble::clocks,
                                            Trouble::losses};
    trouble_ = kTroubles[random_.below(4)];
  }
  habits_.hasty = trouble_ == Trouble::clocks || random_.one_in(5);
  if (trouble_ != Trouble::all) {
    habits_.long_ttl = habits_.long_ttl && trouble_ == Trouble::losses && random_.one_in(4);
    habits_.identities = false;
    habits_.resources = 1;
  }
  build();
}

void Simulation::build() {
  const auto clock = [this] {
    return OwnClock(kEpoch + random_.between(-400ms, 400ms),
                    static_cast<std::int64_t>(random_.below(6001)) - 3000);
  };
  const std::size_t nodes = random_.one_in(5) ? 5 : 3;
  const std::size_t clients = 2 + random_.below(2);
  checks_ = std::make_unique<Checks>(world_, nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    hosts_.push_back(std::make_unique<Host>(
        world_, clients, clock(), [this, i](std::size_t home, const interlock::Owner& owner) {
          return clients_[home]->wire(i).publish(owner);
        }));
  }
  for (std::size_t i = 0; i < clients; ++i) {
    clients_.push_back(
        std::make_unique<Client>(world_, i, clock(), hosts_, weather_, traits_, options_.seed));
    const auto workers = 1 + random_.below(2);
    for (std::size_t j = 0; j < workers; ++j) {
      workers_.push_back(std::make_unique<Worker>(*clients_.back(), *checks_, habits_,
                                                  Random(options_.seed, 200 + workers_.size())));
    }
  }
  faults_ = std::make_unique<Faults>(world_, weather_, hosts_, clients_, workers_, *checks_,
                                     options_.seed);
}

Result Simulation::run() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!options_.without_workers.contains(i)) workers_[i]->start();
  }
  if (trouble_ == Trouble::clocks) checks_->only_fences();
  healed_ = faults_->plan(options_.without_faults, trouble_);
  world_.run_until(healed_);
  if (world_.check().empty()) {
    heal();
    judge();
  }
  return {.check = world_.check(),
          .what = world_.what(),
          .trace = world_.lines(),
          .events = world_.events(),
          .grants = checks_->grants(),
          .faults = faults_->count(),
          .workers = workers_.size()};
}

void Simulation::heal() {
  faults_->heal();
  world_.trace([] { return "everything has healed"; });
  for (const auto& worker : workers_) worker->finish();
  to_probe_ = habits_.resources;
}

// Nodes that lost their data wait for the longest TTL that they know of. As long as that lasts, a Redlock of which a
// majority is new grants nothing.
bool Simulation::may_take_long() const {
  const auto ready = std::count_if(hosts_.begin(), hosts_.end(),
                                   [](const auto& host) { return host->node().ready(); });
  return habits_.long_ttl && static_cast<std::size_t>(ready) * 2 < hosts_.size();
}

void Simulation::judge() {
  const auto bound = 2 * habits_.longest_ttl + 1s;
  // Who waited before still gets it first, and gives it back at once.
  world_.run_until(healed_ + bound);
  if (may_take_long()) return;
  for (const auto& worker : workers_) {
    if (!worker->idle() && !worker->client().crashed())
      world_.violate("recovery", worker->doing() + " still, though everything has healed");
  }
  for (std::size_t i = 0; i < habits_.resources; ++i) {
    const auto free = std::find_if(workers_.begin(), workers_.end(), [](const auto& worker) {
      return worker->idle() && !worker->client().crashed();
    });
    if (free == workers_.end()) break;
    (*free)->probe(std::string(1, static_cast<char>('a' + i)), [this] { --to_probe_; });
    world_.run_until(world_.now() + 2s);
  }
  if (to_probe_ > 0) world_.violate("recovery", "nobody is granted though nobody holds it");
  world_.run_until(world_.now() + 5s);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    for (const auto& use : hosts_[i]->node().uses(hosts_[i]->clock())) {
      world_.violate("left behind", "node " + std::to_string(i) + ": " + use.owner.brief() +
                                        (use.waits ? " waits for " : " holds ") + use.resource);
    }
  }
  for (const auto& client : clients_) {
    if (!client->crashed() && client->open_calls() > 0)
      world_.violate("left behind",
                     "client " + std::to_string(client->number()) + " has calls that never end");
  }
}

}  // namespace

Result run(const Options& options) { return Simulation(options).run(); }

Options shorten(Options options, const std::string& check, int runs) {
  const auto still = [&](const Options& shorter) {
    return runs-- > 0 && run(shorter).check == check;
  };
  const auto size = run(options);
  for (std::size_t i = 0; i < size.faults; ++i) {
    auto shorter = options;
    shorter.without_faults.insert(i);
    if (still(shorter)) options = shorter;
  }
  for (std::size_t i = 0; i < size.workers; ++i) {
    auto shorter = options;
    shorter.without_workers.insert(i);
    if (still(shorter)) options = shorter;
  }
  options.traces = true;
  return options;
}

}  // namespace simulation
