// What goes wrong in a run. Each fault has a stream of chance of its own, so that leaving out another one does not
// change it.
//
//     part     | between some clients and some nodes nothing arrives, in one direction or both, or only late
//     stop     | a node does nothing until it goes on
//     restart  | a node is killed, and started again with its data
//     wipe     | a node is killed, and started again empty, or with data that may be old. Never so many at a time that
//              | no majority knows what was: the store does not promise to survive that
//     cut      | a client's connections to a node end; what is on its way arrives, perhaps late, or does not
//     refuse   | a node answers everything, greetings too, with that it is loading or busy
//     turn_away| a node ends connections while they are greeted
//     slow     | messages take long, and overtake each other on different connections
//     doubled  | nodes serve some messages twice
//     flush    | a node forgets the scripts
//     lag      | messages between one client and one node take long
//     clock    | a node's clock is set forward, which ends its holds early, or back. Only in runs where nothing but fences counts
//     sleep    | a client does nothing until it goes on
//     crash    | a client ends and leaves everything behind
#pragma once

#include <set>

#include "run.hpp"
#include "worker.hpp"

namespace simulation {

class Faults {
 public:
  Faults(World& world, Path::Weather& weather, std::vector<std::unique_ptr<Host>>& hosts,
         std::vector<std::unique_ptr<Client>>& clients,
         std::vector<std::unique_ptr<Worker>>& workers, Checks& checks, std::uint64_t seed);

  /// Says when all has to heal.
  Time plan(const std::set<std::size_t>& without, Trouble trouble);
  void heal();
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void begin(Random random);
  void begin_clocks(Random random);
  void begin_losses(Random random);
  void lag(Random& random, Duration lasts);
  void part(Random& random, Duration lasts);
  void stop(Random& random, Duration lasts);
  void restart(Random& random, Duration lasts, bool wipes);
  void cut(Random& random);
  void refuse(Random& random, Duration lasts);
  void turn_away(Random& random, Duration lasts);
  void reconnect(Random& random, std::size_t node);
  void slow(Random& random, Duration lasts);
  void sleep(Random& random, Duration lasts);
  void crash(Random& random);
  void start(std::size_t node, Node::Restart how);
  void say(const std::string& what);
  [[nodiscard]] NodeSet all() const { return (NodeSet{1} << hosts_.size()) - 1; }
  [[nodiscard]] bool may_wipe(std::size_t node) const;

  World& world_;
  Path::Weather& weather_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  std::vector<std::unique_ptr<Client>>& clients_;
  std::vector<std::unique_ptr<Worker>>& workers_;
  Checks& checks_;
  std::uint64_t seed_;
  std::size_t count_ = 0;
};

}  // namespace simulation
