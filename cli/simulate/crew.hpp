// The processes of a simulation: this program, started again for each.
#pragma once

#include <sys/types.h>

#include "interlock/client.hpp"
#include "simulate/arena.hpp"

namespace cli::simulation {

class Crew {
 public:
  /// `words`: what this program was told, of which each process finds out the store.
  Crew(Arena& arena, std::vector<std::string> words);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// Kills those that are left.
  ~Crew();

  void start(std::uint32_t process);
  /// Kills it, takes its marks from the register, and starts it anew.
  void kill(std::uint32_t process);
  void stop(std::uint32_t process);
  void go_on();
  /// All of them, whoever stopped them.
  void go_on_all();
  /// The one that is stopped, if any.
  [[nodiscard]] std::optional<std::uint32_t> stopped() const { return stopped_; }
  /// How many run. One that ended before it was told to is a failure.
  std::uint32_t running();

 private:
  struct Member {
    pid_t pid = 0;
    std::uint32_t life = 0;
  };
  void mark(std::uint32_t process, Event::Kind kind, interlock::Duration begin);

  Arena& arena_;
  std::vector<std::string> words_;
  std::vector<Member> members_;
  std::optional<std::uint32_t> stopped_;
  interlock::Duration stopped_at_{};
};

/// The threads of one process; they begin when the simulation has started, and this returns when it is
/// over. `life`: how often the process was started before.
void work(Arena& arena, std::uint32_t process, std::uint32_t life, const interlock::Client& client);

}  // namespace cli::simulation
