// One thread of a worker: takes a lock in some way, does something with the lease, gives it back, over and over. All
// that it chooses comes from the seed, the worker's name and the hand's number.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "interlock/acquirer.hpp"
#include "register.hpp"
#include "topology.hpp"
#include "worker.hpp"

namespace torture {

/// One call for a lock.
struct Wish {
  std::vector<interlock::Part> parts;
  interlock::Options options{};
  std::string via = "call";
  std::string form = "wait";
  std::optional<interlock::Duration> limit{};
  std::optional<interlock::Duration> cancel_after{};
};

class Hand {
 public:
  Hand(Worker& worker, int number);

  /// Until the worker ends.
  void run();

 private:
  struct Granted {
    std::string op;
    std::int64_t asked = 0;
    interlock::Lease lease{};
  };

  void turn();

  // Wishes.
  Wish any_wish();
  interlock::Duration some_ttl();
  /// Half of them are shorter than many a call takes.
  interlock::Duration some_limit(interlock::Duration at_most);
  void choose_way(Wish& wish);
  std::string name(const std::string& kind, std::uint64_t count);

  // Acquiring: `ask` writes what is asked, the rest does it and writes what was told.
  std::string ask(const Wish& wish);
  void told(const std::string& op, interlock::Attempt& attempt) const;
  void told(const std::string& op, const interlock::Error& error) const;
  void told(const std::string& op, const std::string& answer) const;
  std::optional<Granted> acquire(const Wish& wish);
  std::optional<interlock::Lease> acquire_by(const std::string& via,
                                             const interlock::Acquirer& lock,
                                             const interlock::Wait& wait, const std::string& op);
  void lock_and_unlock(const Wish& wish);

  // What is done with a lease.
  void hold(const Wish& wish, Granted granted);
  /// What a program might do when it loses a lease.
  std::function<void()> something_for_a_loss();
  void do_something(const Wish& wish, Grip& grip, interlock::Lease& lease);
  void change_mode(const Wish& wish, Grip& grip, interlock::Lease& lease);
  void update(const Grip& grip, const interlock::Lease& lease, const std::string& resource);
  void give_back(Grip& grip, interlock::Lease& lease);
  using Limit = std::optional<interlock::Duration>;
  std::string begin(const std::string& verb, const std::string& lease, const Limit& limit = {});
  /// Writes what a verb answered, or how it failed.
  void verb(const std::string& verb, const std::string& lease,
            const std::function<std::string()>& call, const Limit& limit = {});
  void detach(Grip& grip, interlock::Lease& lease);
  void adopt();
  void break_something();
  void fork_and_use();

  // Recipes and the command.
  void lead();
  void claim_task();
  void fly();
  void run_command();

  void pause(interlock::Duration at_most);
  void sleep(interlock::Duration time) const;
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool chance(double of_one) { return std::uniform_real_distribution<>()(random_) < of_one; }

  Worker& worker_;
  int number_;
  Random random_;
  Register register_;
  const std::string& prefix_;
};

}  // namespace torture
