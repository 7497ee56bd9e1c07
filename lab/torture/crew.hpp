// The worker processes of a round, and what can be done to them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "director.hpp"
#include "history.hpp"
#include "wall_clock.hpp"
#include "worker.hpp"

namespace torture {

class Crew {
 public:
  Crew(const RoundPlan& plan, WorkerPlan first, const Log& log);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// Kills who is left.
  ~Crew();

  /// Killing and stopping workers, commands and their guardians; and what goes wrong around a worker.
  std::vector<Fault> faults();
  /// Asks all to end, and waits for it. Those that don't within `patience` are written down as hung, and killed.
  void end(interlock::Duration patience);

 private:
  struct Member {
    pid_t pid = 0;
    int input = -1;  ///< its end is the end of the member
    int life = 0;
    std::string name{};
  };
  std::vector<Fault> clock_faults();
  std::vector<Fault> memory_faults();
  void start(std::size_t member);
  void kill(std::size_t member);
  /// Processes of the command that are still there: `interlock run` and guardians, of which `run` was not touched yet.
  std::vector<pid_t> commands();
  void reap_orphans();

  const RoundPlan& plan_;
  WorkerPlan worker_;
  const Log& log_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<WallClock>> clocks_;     ///< of each; none if they can't be set
  std::vector<std::unique_ptr<SharedNumber>> memory_;  ///< of each, see no_memory.hpp
  std::set<pid_t> touched_;
};

}  // namespace torture
