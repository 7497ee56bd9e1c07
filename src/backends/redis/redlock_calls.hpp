// All calls of one client of a Redlock, and what they share: numbers of attempts, places in line, nodes that lost
// their data, and what nodes still have to be told.
//
//     event                          | what becomes of it
//     -------------------------------+----------------------------------------------------------------------------
//     acquire                        | a RedlockAcquisition. Closes all earlier calls of its owner: what they still
//                                    | sent would undo what the new one does
//     renew                          | a RedlockRenewal; closed from its beginning if a release of its owner still
//                                    | has something to say: what it healed would stay
//     release                        | a RedlockRelease. Closes all earlier calls of its owner: what they still sent
//                                    | would bring back what it takes away
//     heard, of a question           | told to its call, or to RedlockMending
//     heard, of an order to insist   | if it failed, the node owes it (RedlockDebts)
//     tick                           | a node that has not answered in time has failed; what is owed is due
//     turn, listens                  | told to RedlockWaiters; a wake-up, if enough nodes say so
//
// A call may take `patience`, a quarter of its TTL, so that a node that hangs does not cost the lease; it never takes
// longer than the caller allows.
//
// A plain state machine: no lock, no thread, no socket, no clock. Redlock (redlock_store.hpp) drives it on real servers,
// and lab/simulation on simulated ones.
#pragma once

#include <set>
#include <unordered_map>
#include <variant>

#include "backends/redis/redlock_acquisition.hpp"
#include "backends/redis/redlock_debts.hpp"
#include "backends/redis/redlock_mending.hpp"
#include "backends/redis/redlock_release.hpp"
#include "backends/redis/redlock_renewal.hpp"

namespace interlock::redis {

class RedlockCalls {
 public:
  using Id = std::uint64_t;

  struct Now {
    TimePoint time{};
    std::uint64_t clock = 0;  ///< the wall clock, in microseconds; decides nothing
  };

  /// What to do, in this order: all sends before anything that another thread may send.
  struct Actions {
    struct Send {
      Id letter = 0;  ///< to be handed back with the answer, or with why there is none
      std::size_t node = 0;
      Message message{};
      TimePoint deadline{};
      bool caller_waits = false;
    };
    struct Listen {
      Owner owner{};
      std::uint64_t attempt = 0;
    };
    std::vector<Send> sends{};
    std::vector<Listen> listens{};  ///< on all nodes: `listens` for each that hears
    std::vector<std::pair<Id, Answer>> answers{};
    std::vector<Owner> wakes{};
  };

  RedlockCalls(RedlockNodes nodes, Duration call_timeout);
  RedlockCalls(const RedlockCalls&) = delete;
  RedlockCalls& operator=(const RedlockCalls&) = delete;

  Id acquire(const ClaimPtr& claim, bool queue, Call how, Now now, Actions& actions);
  Id renew(const ClaimPtr& claim, Call how, Now now, Actions& actions);
  Id release(const ClaimPtr& claim, Call how, Now now, Actions& actions);

  void heard(Id letter, std::size_t node, Vote vote, Now now, Actions& actions);
  /// False: nobody waits for the answer any more, or what it does is not wanted any more.
  [[nodiscard]] bool may_send(Id letter) const;
  /// A node says that it is this owner's turn.
  void turn(const Owner& owner, std::size_t node, Actions& actions);
  /// Messages of this node reach us. `late`: they did not when it was asked for.
  void listens(const Actions::Listen& listen, std::size_t node, bool late, Actions& actions);
  void tick(Now now, Actions& actions);
  [[nodiscard]] TimePoint next_tick() const noexcept;

  [[nodiscard]] const RedlockNodes& nodes() const noexcept { return nodes_; }
  /// Calls that are not over yet, or still have something to say to a node.
  [[nodiscard]] std::size_t open() const noexcept { return calls_.size(); }

 private:
  static constexpr Id kMender = 0;
  static constexpr Duration kShortestPatience = std::chrono::milliseconds(20);

  struct OpenCall {
    ClaimPtr claim;
    Call how;
    std::variant<RedlockAcquisition, RedlockRenewal, RedlockRelease> machine;
    bool closed = false;
    bool answered = false;
    bool mending = false;  // waits until nodes were mended
    std::size_t kept = 0;  // by letters and debts
  };
  struct Letter {
    Id call = kMender;
    Id question = 0;  // none: nobody waits for the answer
    Message::Kind kind{};
    std::uint64_t attempt = 0;
    bool until_closed = true;
    std::optional<RedlockDebts::Debt> debt{};
  };
  struct Question {
    TimePoint deadline{};
    Duration within{};
    std::vector<std::pair<Id, std::size_t>> letters{};  // and their nodes
    std::size_t left = 0;
  };

  template <class Machine>
  Id add(const ClaimPtr& claim, Call how, Machine machine);
  void close(const Owner& owner);
  [[nodiscard]] bool has_open_release(const Owner& owner) const;
  void begin(Id id, Now now, Actions& actions);
  [[nodiscard]] TimePoint deadline_of(const OpenCall& call, Now now) const;
  void perform(Id id, Steps steps, Now now, Actions& actions);
  void ask(Id id, std::vector<Steps::Send> sends, Now now, Actions& actions);
  void post(Letter letter, std::size_t node, Message message, TimePoint deadline, bool caller_waits,
            Actions& actions);
  void insist(std::size_t node, RedlockDebts::Debt debt, Now now, Actions& actions);
  void take(const Letter& letter, std::size_t node, Vote vote, Now now, Actions& actions);
  void mend(Id id, Now now, Actions& actions);
  void mended(Id id, Now now, Actions& actions);
  void expire(Id question, Now now, Actions& actions);
  void let_go(Id id);
  [[nodiscard]] bool is_closed(Id id) const;

  RedlockNodes nodes_;
  const Duration call_timeout_;
  RedlockWaiters waiters_;
  RedlockMending mending_;
  std::vector<RedlockDebts> debts_;  // of each node
  std::uint64_t attempts_ = 0;
  Id last_id_ = 0;
  std::unordered_map<Id, OpenCall> calls_;
  std::unordered_multimap<Owner, Id> by_owner_;
  std::unordered_map<Id, Letter> letters_;
  std::unordered_map<Id, Question> questions_;
  std::set<std::pair<TimePoint, Id>> deadlines_;  // of questions
};

}  // namespace interlock::redis
