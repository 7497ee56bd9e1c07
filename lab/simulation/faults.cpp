#include "faults.hpp"

#include <algorithm>

namespace simulation {

using interlock::redis::bit;

Faults::Faults(World& world, Path::Weather& weather, std::vector<std::unique_ptr<Host>>& hosts,
               std::vector<std::unique_ptr<Client>>& clients,
               std::vector<std::unique_ptr<Worker>>& workers, Checks& checks, std::uint64_t seed)
    : world_(world),
      weather_(weather),
      hosts_(hosts),
      clients_(clients),
      workers_(workers),
      checks_(checks),
      seed_(seed) {}

Time Faults::plan(const std::set<std::size_t>& without, Trouble trouble) {
  Random random(seed_, 3);
  const bool clocks = trouble == Trouble::clocks;
  const Time length = clocks ? random.between(1s, 3s) : random.between(3s, 10s);
  count_ = clocks                       ? 10 + random.below(120)
           : trouble == Trouble::losses ? 5 + random.below(25)
                                        : random.below(9);
  for (std::size_t i = 0; i < count_; ++i) {
    Random own(seed_, 300 + i);
    const auto when = own.between(50ms, length);
    if (without.contains(i)) continue;
    world_.at(when, [this, own, trouble] {
      if (trouble == Trouble::clocks) return begin_clocks(own);
      if (trouble == Trouble::losses) return begin_losses(own);
      begin(own);
    });
  }
  return length;
}

void Faults::begin(Random random) {
  const auto lasts = random.one_in(3) ? random.between(1s, 4s) : random.between(5ms, 900ms);
  switch (random.below(18)) {
    case 0:
    case 1:
    case 2:
      return part(random, lasts);
    case 3:
    case 4:
      return stop(random, lasts);
    case 5:
      return restart(random, lasts, false);
    case 6:
    case 7:
      return restart(random, lasts, true);
    case 8:
      return cut(random);
    case 9:
      return slow(random, lasts);
    case 10: {
      const auto node = random.below(hosts_.size());
      say("node " + std::to_string(node) + " forgets its scripts");
      return hosts_[node]->forget_scripts();
    }
    case 11:
      weather_.doubled = 4;
      say("messages are doubled");
      return world_.in(lasts, [this] { weather_.doubled = 0; });
    case 12:
      return sleep(random, lasts);
    case 13:
    case 14:
      return lag(random, lasts);
    case 15:
      return refuse(random, lasts);
    case 16:
      return turn_away(random, lasts);
    default:
      return crash(random);
  }
}

void Faults::begin_clocks(Random random) {
  const auto lasts = random.between(5ms, 400ms);
  switch (random.below(12)) {
    case 0:
      return part(random, lasts);
    case 1:
      return stop(random, lasts);
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
      return lag(random, lasts);
    default: {
      const auto node = random.below(hosts_.size());
      const bool back = random.one_in(3);
      const auto by = random.between(100ms, 5s);
      say("the clock of node " + std::to_string(node) + " is set " + (back ? "back" : "forward"));
      return hosts_[node]->set(back ? -by : by);
    }
  }
}

void Faults::begin_losses(Random random) {
  const auto lasts = random.between(5ms, 1500ms);
  switch (random.below(9)) {
    case 0:
    case 1:
    case 2:
      return restart(random, random.between(1ms, 100ms), true);
    case 3:
    case 4:
      return part(random, lasts);
    case 5:
      return stop(random, lasts);
    case 6:
      return sleep(random, lasts);
    case 7:
      return random.one_in(2) ? refuse(random, lasts) : turn_away(random, lasts);
    default:
      return lag(random, lasts);
  }
}

void Faults::say(const std::string& what) {
  world_.trace([&] { return "fault: " + what; });
}

void Faults::part(Random& random, Duration lasts) {
  const auto there = random.below(3) != 0;
  const auto back = !there || random.one_in(2);
  NodeSet nodes = 0;
  for (std::size_t node = 0; node < hosts_.size(); ++node)
    nodes |= random.one_in(2) ? bit(node) : 0;
  for (const auto& client : clients_) {
    if (!random.one_in(2)) continue;
    checks_.disturbed(nodes, client->number(), world_.now() + lasts);
    for (std::size_t node = 0; node < hosts_.size(); ++node) {
      if ((nodes & bit(node)) == 0) continue;
      auto& wire = client->wire(node);
      wire.part(there, back);
      say("client " + std::to_string(client->number()) + " and node " + std::to_string(node) +
          " are parted" +
          (there && back ? ""
           : there       ? ", there"
                         : ", back"));
      world_.in(lasts, [&wire] { wire.join(); });
    }
  }
}

void Faults::stop(Random& random, Duration lasts) {
  const auto node = random.below(hosts_.size());
  say("node " + std::to_string(node) + " stops");
  checks_.disturbed(bit(node), std::nullopt, world_.now() + lasts);
  hosts_[node]->stop();
  world_.in(lasts, [this, node] {
    say("node " + std::to_string(node) + " goes on");
    hosts_[node]->go_on();
  });
}

bool Faults::may_wipe(std::size_t node) const {
  std::size_t fresh = 1;
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (other != node && !hosts_[other]->node().ready()) ++fresh;
  }
  return fresh <= (hosts_.size() - 1) / 2;
}

void Faults::restart(Random& random, Duration lasts, bool wipes) {
  const auto node = random.below(hosts_.size());
  if (hosts_[node]->down() || (wipes && !may_wipe(node))) return;
  const auto how = !wipes             ? Node::Restart::durable
                   : random.one_in(4) ? Node::Restart::old
                                      : Node::Restart::empty;
  checks_.disturbed(bit(node), std::nullopt, world_.now() + lasts);
  say("node " + std::to_string(node) + " is killed");
  hosts_[node]->kill();
  // What it forgets is forgotten from now on: nobody may be wiped meanwhile.
  if (wipes) hosts_[node]->node().restart(how, hosts_[node]->epoch());
  for (const auto& client : clients_) client->wire(node).restarted();
  world_.in(lasts, [this, node, how] { start(node, how); });
}

void Faults::start(std::size_t node, Node::Restart how) {
  static const char* const kNames[] = {"with its data", "with data that may be old", "empty"};
  if (!hosts_[node]->down()) return;
  say("node " + std::to_string(node) + " is started, " + kNames[static_cast<int>(how)]);
  hosts_[node]->start(how);
}

void Faults::cut(Random& random) {
  const auto node = random.below(hosts_.size());
  const auto client = random.below(clients_.size());
  say("the connection of client " + std::to_string(client) + " to node " + std::to_string(node) +
      " is cut");
  checks_.disturbed(bit(node), client, world_.now() + 1s);
  clients_[client]->wire(node).cut(random.one_in(2));
}

void Faults::refuse(Random& random, Duration lasts) {
  const auto node = random.below(hosts_.size());
  const auto* why = random.one_in(2) ? "LOADING Redis is loading the dataset in memory"
                                     : "BUSY Redis is busy running a script";
  say("node " + std::to_string(node) + " answers " + why);
  checks_.disturbed(bit(node), std::nullopt, world_.now() + lasts);
  hosts_[node]->refuse(why, world_.now() + lasts);
  reconnect(random, node);
}

void Faults::turn_away(Random& random, Duration lasts) {
  const auto node = random.below(hosts_.size());
  say("node " + std::to_string(node) + " ends connections that begin");
  checks_.disturbed(bit(node), std::nullopt, world_.now() + lasts);
  hosts_[node]->turn_away(world_.now() + lasts);
  reconnect(random, node);
}

// What goes wrong with connections that begin needs such.
void Faults::reconnect(Random& random, std::size_t node) {
  for (const auto& client : clients_) {
    if (random.one_in(2)) client->wire(node).cut(random.one_in(2));
  }
}

void Faults::slow(Random& random, Duration lasts) {
  say("messages are slow");
  checks_.disturbed(all(), std::nullopt, world_.now() + lasts + 1s);
  const auto usual = weather_.most;
  weather_.most = random.between(10ms, 700ms);
  world_.in(lasts, [this, usual] { weather_.most = std::min(usual, 10ms + 0ns); });
}

void Faults::lag(Random& random, Duration lasts) {
  const auto client = random.below(clients_.size());
  const auto node = random.below(hosts_.size());
  say("messages between client " + std::to_string(client) + " and node " + std::to_string(node) +
      " are slow");
  auto& wire = clients_[client]->wire(node);
  checks_.disturbed(bit(node), client, world_.now() + lasts + 1s);
  wire.lag(random.between(5ms, 400ms));
  world_.in(lasts, [&wire] { wire.lag(0ms); });
}

void Faults::sleep(Random& random, Duration lasts) {
  auto& client = *clients_[random.below(clients_.size())];
  say("client " + std::to_string(client.number()) + " sleeps");
  checks_.disturbed(0, client.number(), world_.now() + lasts);
  client.stop();
  world_.in(lasts, [this, &client] {
    say("client " + std::to_string(client.number()) + " goes on");
    client.go_on();
  });
}

void Faults::crash(Random& random) {
  auto& client = *clients_[random.below(clients_.size())];
  const auto alive = std::count_if(clients_.begin(), clients_.end(),
                                   [](const auto& each) { return !each->crashed(); });
  // What a node still had to be told to release would stay there for ten minutes.
  const bool leaves_long = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->takes_long_ttls();
  });
  if (alive == 1 || leaves_long || client.crashed()) return;
  say("client " + std::to_string(client.number()) + " crashes");
  client.crash();
}

void Faults::heal() {
  weather_ = {};
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    hosts_[node]->heal();
    for (const auto& client : clients_) {
      client->wire(node).join();
      client->wire(node).lag(0ms);
    }
  }
  for (const auto& client : clients_) client->go_on();
}

}  // namespace simulation
