// One who takes locks, works, and gives them back, over and over.
#pragma once

#include <random>
#include <stop_token>

#include "interlock/client.hpp"
#include "simulate/arena.hpp"

namespace cli::simulation {

class Worker {
 public:
  /// `life`: how often its process was started anew before. All it does at random comes from the
  /// plan's seed, its number and its life.
  Worker(Arena& arena, std::uint32_t number, std::uint32_t life, interlock::Client client,
         std::stop_token stop);

  /// Until it is stopped.
  void run();

 private:
  struct Wish {
    std::vector<std::uint32_t> resources;
    bool exclusive = true;
    std::size_t role = 0;
    interlock::Options options{};
    interlock::Wait wait{};
    interlock::Duration hold{};
    bool partly = false;  ///< gives back one of several before the others
  };

  void turn();
  Wish wish();
  Wish stress_wish();
  void take(const Wish& wish);
  void take_without_lock(const Wish& wish);
  void hold(const Wish& wish, interlock::Lease& lease);
  void break_something();

  std::vector<std::uint32_t> some(std::size_t count);
  void begin(Event::Kind kind, std::uint32_t resource);
  void end(std::size_t lane = 0, std::size_t lanes = 1);
  void mark(Event::Kind kind, std::uint32_t resource);
  void sleep(interlock::Duration duration) const;
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool chance(double of_one) { return std::uniform_real_distribution<>()(random_) < of_one; }
  interlock::Duration up_to(interlock::Duration most);

  Arena& arena_;
  std::uint32_t number_;
  interlock::Client client_;
  std::stop_token stop_;
  std::mt19937_64 random_;
  Tally& tally_;
};

}  // namespace cli::simulation
