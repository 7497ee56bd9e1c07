// The rules of exclusion and order, once, for the stores that keep claims themselves (memory,
// file).
//
// A table of rows, one per resource; a row has holders and a queue. No clock, no lock, no I/O: the
// store says what time it is and guards the table. A claim on several resources has one record in
// each row, all with the same owner and, in the queues, the same ticket.
//
// Who may hold (rule 1):
//
//     held \ asked   exclusive   shared   slots
//     exclusive      no          no       error
//     shared         no          yes      error
//     slots          error       error    while the sum stays within capacity
//
//   The same (non-empty) identity never stands in its own way, slots apart.
//
// Whose turn it is (rule 3): a claim is granted when it fits the holders of every row it names
// *and* conflicts with nobody ahead of it in any of their queues. So claims that don't conflict
// never wait for each other, and those that do are served by ticket. Tickets are ordered
//
//     a holder that wants more  <  higher priority  <  earlier arrival
//
// A freed row wakes the waiters that now fit, in order, and they ask again: nobody can slip in
// between, because their tickets stand in the queue. A grant wakes, too: those behind it who wait for slots, as one of
// them may have been woken together with it, and have asked first, and been told to wait; and those of its identity,
// which need not wait for others any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock {

/// Where a claim comes from, in the store's own terms. The table only carries it.
struct Origin {
  std::uint64_t home = 0;   ///< which client to wake
  std::uint64_t born = 0;   ///< when its process started, to tell a reused pid
  std::uint64_t realm = 0;  ///< in which pid namespace the pid means something
  bool own = true;          ///< the process is the one that asks, so it knows
};

struct Ticket {
  bool stronger = false;  ///< holds already and wants more: first in line
  std::int32_t priority = 0;
  std::uint64_t number = 0;

  bool operator<(const Ticket& other) const noexcept {
    if (stronger != other.stronger) return stronger;
    if (priority != other.priority) return priority > other.priority;
    return number < other.number;
  }
};

struct Record {
  Owner owner{};
  Mode mode = Mode::exclusive;
  std::uint32_t slots = 1;
  std::uint32_t capacity = 0;
  bool ancestor = false;
  std::int32_t priority = 0;
  TimePoint since{};
  TimePoint expires{};
  std::uint64_t fence = 0;
  std::shared_ptr<const Who> who{};
  Origin origin{};
};

struct Row {
  std::vector<Record> holders;
  std::map<Ticket, Record> queue;
  /// Nothing here expires before: a long queue is looked through seldom, not at every call.
  TimePoint sweep_at = TimePoint::max();

  void expects(const Record& record) noexcept { sweep_at = std::min(sweep_at, record.expires); }
  [[nodiscard]] bool idle() const noexcept { return holders.empty() && queue.empty(); }
};

/// Whom to wake after the table was changed.
struct Wake {
  std::uint64_t home = 0;
  Owner owner{};
};

class LockTable {
 public:
  struct Rules {
    /// The next fence of this resource: larger than any before.
    std::function<std::uint64_t(const std::string& resource)> next_fence;
    /// The record's process is known to have ended. Asked only about records that are in somebody's
    /// way. Empty: the store can't tell.
    std::function<bool(const Record&)> gone{};
    /// How long a place in the queue lasts without a heartbeat.
    Duration ticket_ttl = std::chrono::seconds(3);
  };

  explicit LockTable(Rules rules) : rules_(std::move(rules)) {}

  // The calls of Backend, see there. `wakes` collects whom to wake once the change is made.
  Answer acquire(const Claim& claim, bool queue, const Origin& origin, TimePoint now,
                 std::vector<Wake>& wakes);
  Answer renew(const Claim& claim, const Origin& origin, TimePoint now, std::vector<Wake>& wakes);
  /// `by`: the home of whoever releases. A holder of another home is evicted, and told to look.
  Answer release(const Claim& claim, std::uint64_t by, TimePoint now, std::vector<Wake>& wakes);
  [[nodiscard]] std::vector<ResourceState> inspect(const Query& query, TimePoint now) const;

  /// Drops what has expired, in every row, and rows that nobody uses. Comes by itself now and then.
  void sweep(TimePoint now, std::vector<Wake>& wakes);

  /// Who stands in the way of a claim that was told `queued` or `busy`: holders first, then those
  /// ahead in the queue, at most `most` of them.
  [[nodiscard]] std::vector<Record> in_the_way(const Claim& claim, std::size_t most) const;

  // For stores that keep the table outside of memory.
  /// Rows that nobody uses any more stay for a while, empty: `sweep` takes them out.
  [[nodiscard]] const std::unordered_map<std::string, Row>& rows() const noexcept { return rows_; }
  void restore_holder(const std::string& resource, Record record);
  void restore_waiter(const std::string& resource, Ticket ticket, Record record);
  [[nodiscard]] std::uint64_t last_ticket() const noexcept { return last_ticket_; }
  void set_last_ticket(std::uint64_t number) noexcept { last_ticket_ = number; }

 private:
  /// How many of the claim's parts this owner holds.
  [[nodiscard]] std::size_t held_by(const Owner& owner, const Claim& claim) const;

  struct Hindrance {
    bool any = false;
    TimePoint ends = TimePoint::max();  ///< the first of those in the way to expire
  };

  [[nodiscard]] std::optional<Error> misfit(const Claim& claim) const;
  Hindrance hindrance(const Part& part, const Claim& claim, const Ticket& ticket,
                      const Row& row) const;
  Answer grant(const Claim& claim, const Origin& origin, TimePoint now, std::vector<Wake>& wakes);
  Answer rearm(const Claim& claim, const Origin& origin, TimePoint now);
  [[nodiscard]] bool has_rival(const Claim& claim) const;
  /// Drops those in its rows whose process has ended. True if there were any.
  bool drop_gone(const Claim& claim, std::vector<Wake>& wakes);
  Answer enqueue(const Claim& claim, const Ticket& ticket, const Origin& origin, TimePoint now,
                 TimePoint look);
  void leave_queue(const Claim& claim);
  void give_up(const Claim& claim, std::vector<Wake>& wakes);
  void leave_row(const Owner& owner);
  void sweep_rows(const Claim& claim, TimePoint now, std::vector<Wake>& wakes);
  void sweep_row(Row& row, TimePoint now, std::vector<Wake>& wakes);
  void wake_next(const Row& row, std::vector<Wake>& wakes) const;
  void wake_behind(const Claim& claim, bool waited, std::vector<Wake>& wakes) const;

  Rules rules_;
  std::unordered_map<std::string, Row> rows_;
  struct Queued {
    Ticket ticket;
    std::size_t rows = 0;  ///< in so many queues
  };
  std::unordered_map<Owner, Queued> tickets_;
  std::uint64_t last_ticket_ = 0;
  std::size_t calls_since_sweep_ = 0;
};

}  // namespace interlock
