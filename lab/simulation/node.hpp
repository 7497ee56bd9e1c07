// A simulated node of a Redlock: the rules of src/backends/redis/scripts/redlock_*.lua and rows.lua in C++, function by
// function under the same names. tests/redis/simulated_node_test.cpp compares it with the scripts on a real server.
//
// Left out: semaphores, locks of other programs and of other formats.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/redis/redlock_votes.hpp"

namespace simulation {

using interlock::Claim;
using interlock::Duration;
using interlock::Mode;
using interlock::Owner;
using interlock::redis::Message;
using interlock::redis::Vote;

class Node {
 public:
  /// Tells the client `home` that it is this owner's turn. False: it does not listen.
  using Tell = std::function<bool(std::size_t home, const Owner& owner)>;

  explicit Node(Tell tell) : tell_(std::move(tell)) {}

  /// What the script says. `clock`: the node's own, in microseconds. `home`: the client that asks.
  Vote serve(const Message& message, std::size_t home, std::uint64_t clock);
  enum class Restart : std::uint8_t {
    durable,  ///< with its data, from an append-only file
    old,      ///< with data, but nobody knows how old
    empty,
  };
  void restart(Restart how, std::uint64_t run);

  /// It counts in a majority.
  [[nodiscard]] bool ready() const { return ready_ && (keeps_ || run_ == server_run_); }
  /// Somebody holds or waits, by the node's own clock.
  struct Use {
    std::string resource;
    Owner owner;
    bool waits;
  };
  [[nodiscard]] std::vector<Use> uses(std::uint64_t clock) const;

 private:
  using Ms = std::int64_t;
  using Number = std::uint64_t;

  struct Hold {
    Owner owner{};
    Mode mode = Mode::exclusive;
    Number number = 0;  ///< its fence
    Ms ends = 0;
    Ms ttl = 0;
    Number hold = 0;
    Owner covered{};
    Number attempt = 0;
    std::optional<Number> floor{};
    std::string identity{};
    std::size_t home = 0;
  };
  struct Ticket {
    bool later = true;  ///< false: holds already and wants more
    std::int64_t behind = 0;
    Number number = 0;
    Owner owner{};
    Mode mode = Mode::exclusive;
    auto operator<=>(const Ticket&) const = default;
  };
  struct Waiter {
    Ms ends = 0;
    std::string identity{};
    std::size_t home = 0;
  };
  enum class Value : std::uint8_t { none, owner, shared, same };
  struct Row {
    Value value = Value::none;
    std::optional<Hold> plain{};  ///< the exclusive owner
    std::vector<Hold> holders{};  ///< also below an upgrade that is not confirmed yet
    std::map<Ticket, Waiter> queue{};
  };
  /// A row as this claim meets it.
  struct Met {
    const std::string* name;
    Row* row;
    Mode mode;
    Hold* hold = nullptr;
  };

  void open(std::uint64_t clock);
  Vote acquire(const Message& message);
  Vote confirm(const Message& message);
  Vote yield(const Message& message);
  Vote renew();
  Vote heal(const Message& message);
  Vote release(const Message& message);
  Vote mend(const Message& message);

  Vote claim(const Message& message, Number place, Number hold, bool upgrades);
  Vote rearm();
  std::optional<Ms> held_back_by_holders(Met& met);
  Hold* own_hold(Met& met, Mode mode) const;
  [[nodiscard]] bool goes_on(const Met& met) const;

  void meet();
  std::size_t count_held(const Owner& by);
  static Hold* hold_of(Row& row, const Owner& by);
  static Hold* find(Row& row, const Owner& by);
  std::vector<Hold*> others(Row& row) const;
  [[nodiscard]] std::optional<Ticket> queued_at(Row& row) const;
  void sweep(Met& met);
  void settle(Met& met) const;
  void drop_hold(Met& met, const Owner& by);
  void drop_holder(Met& met, const Owner& by);
  static void leave_queue(Row& row, const Ticket& ticket) { row.queue.erase(ticket); }
  bool alive(Row& row, const Ticket& ticket) const;
  std::optional<std::pair<Ticket, Ms>> first_ahead(Row& row, const Ticket* ticket,
                                                   bool writers_only);
  void wake_next(Met& met);
  void wake_own(Row& row, std::map<Ticket, Waiter>::iterator from);
  bool is_told(Row& row, const Ticket& ticket);
  Hold& put(Met& met, Number number, Number hold, const Owner& covered, Number attempt);
  Number& most_had(const Met& met) { return most_[*met.name]; }
  void share_fence(Row& row, Number fence);
  void extend_horizon();
  [[nodiscard]] bool is_newer(Number attempt);
  static bool is_set(const Row& row) {
    return row.value == Value::shared || row.value == Value::same;
  }

  Tell tell_;
  // What it keeps.
  std::optional<Number> born_;
  Number run_ = 0;
  bool ready_ = false;
  Number count_ = 0;
  Ms until_ = 0, longest_ = 0;
  std::optional<Ms> wait_;
  Ms length_ = 0;
  Number ticket_ = 0;
  std::map<std::string, Number> most_;
  std::map<std::string, Row> rows_;
  Number server_run_ = 1;
  bool keeps_ = true;  // it has an append-only file

  // Of the message that it serves.
  const Claim* asks_ = nullptr;
  Owner owner_{}, instead_{};
  Ms ttl_ = 0, now_ = 0;
  Number now_us_ = 0;
  std::string identity_;
  std::size_t home_ = 0;
  std::vector<Met> met_;
};

}  // namespace simulation
