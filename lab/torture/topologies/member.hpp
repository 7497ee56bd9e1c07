// Servers as faults handle them.
#pragma once

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "torture/topology.hpp"

namespace torture {

/// One server, or one member of several. Faults may overlap: it runs again when the last one that took it down has healed.
/// Thread-safe: some faults go on in a thread of their own.
class Member {
 public:
  struct Handling {
    std::function<void()> kill{};
    std::function<void()> start{};
    std::function<void(int signal)> signal{};
    /// Until it serves; empty if `start` does that.
    std::function<void()> wait = [] {};
  };
  Member(std::string name, Handling handling)
      : name_(std::move(name)), handling_(std::move(handling)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_up() const noexcept { return down_ == 0; }

  void take_down();
  void bring_back();
  void wait() const;
  void freeze();
  void thaw();
  /// Does this while it runs, even if it is stopped: nothing that a fault changes may stay when it heals.
  void awake(const std::function<void()>& what) const;
  /// No fault keeps it from answering.
  [[nodiscard]] bool answers() const noexcept { return down_ == 0 && frozen_ == 0; }
  /// Throws if a fault keeps it from answering.
  void check_answers() const;
  /// Down and up again, with this in between. Nothing if another fault has taken it down.
  void restart(const std::function<void()>& between = [] {});

 private:
  std::string name_;
  Handling handling_;
  mutable std::mutex mutex_;  ///< for what `handling_` does
  std::atomic<int> down_ = 0;
  std::atomic<int> frozen_ = 0;
};

using Members = std::vector<Member*>;

/// What a fault is, besides what it does.
struct Nature {
  std::string name{};
  bool voids = false;
  bool disturbs = true;
  bool brings_back = false;
  interlock::Duration at_least{};
};
/// Replication is asynchronous: a failover forgets grants, and releases too.
inline Nature may_fail_over(std::string name = {}) {
  return {.name = std::move(name), .voids = true, .brings_back = true};
}
Fault fault_of(Nature nature, std::function<std::string(Random&)> begin,
               std::function<void()> heal);

/// A fault of one of several things, chosen by the seed each time it begins; only of those that are `fit` then.
template <class T>
Fault one_of(
    Nature nature, std::vector<T*> all, std::function<void(T&, Random&)> begin,
    std::function<void(T&)> heal, std::function<bool(T&)> fit = [](T&) { return true; }) {
  auto chosen = std::make_shared<T*>(nullptr);
  return fault_of(
      std::move(nature),
      [all = std::move(all), begin = std::move(begin), fit = std::move(fit),
       chosen](Random& random) {
        auto fitting = all;
        std::erase_if(fitting, [&](T* one) { return !fit(*one); });
        if (fitting.empty()) throw std::runtime_error("there is nothing to do it to");
        auto& found = *fitting.at(random() % fitting.size());
        begin(found, random);
        *chosen = &found;
        return found.name();
      },
      [heal = std::move(heal), chosen] {
        if (*chosen != nullptr) heal(**chosen);
        *chosen = nullptr;
      });
}

/// A fault of what `find` gives when it begins: the leader, the master.
template <class T>
Fault of_found(Nature nature, std::function<T&()> find, std::function<void(T&)> begin,
               std::function<void(T&)> heal) {
  auto found = std::make_shared<T*>(nullptr);
  return fault_of(
      std::move(nature),
      [find = std::move(find), begin = std::move(begin), found](Random&) {
        auto& chosen = find();
        begin(chosen);
        *found = &chosen;
        return chosen.name();
      },
      [heal = std::move(heal), found] {
        if (*found != nullptr) heal(**found);
        *found = nullptr;
      });
}

/// A fault of everything there is. `heal` may be empty: then it is over as soon as it has begun.
Fault of_all(Nature nature, std::function<void(Random&)> begin, std::function<void()> heal = {});

Fault killed(Nature nature, const Members& members);
/// All but so many of them are down at the same time.
Fault killed_but(Nature nature, const Members& members, std::size_t left);
Fault frozen(Nature nature, const Members& members);
/// One runs for 50 to 300 ms and is stopped for 300 to 1500 ms, over and over.
Fault flapping(const Members& members, Nature nature = {});
Fault restarted(Nature nature, const Members& members,
                const std::function<void(Member&)>& between = {});
/// What heals a fault, in the background, again and again until it succeeds: other faults may have to heal before.
/// `stop` is called when the fault begins anew.
class Healing {
 public:
  void begin(std::function<void()> what);
  void stop() { *thread_ = {}; }

 private:
  std::shared_ptr<std::jthread> thread_ = std::make_shared<std::jthread>();
};

/// As many busy processes as there are processors, and one more.
Fault busy_processors(Nature nature = {});

template <class T>
void append(std::vector<T>& to, std::vector<T> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace torture
