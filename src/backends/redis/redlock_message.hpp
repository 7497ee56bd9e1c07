// What a client of a Redlock says to its nodes, and what its machines want done. Numbers only:
// redlock_words.hpp makes words of a script of them, and the simulation (lab/simulation) does without words.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::redis {

using NodeSet = std::uint64_t;  ///< a bit for each node
inline NodeSet bit(std::size_t node) { return NodeSet{1} << node; }

using ClaimPtr = std::shared_ptr<const Claim>;

/// One question, or order, to one node. scripts/redlock_*.lua say what the node does.
struct Message {
  enum class Kind : std::uint8_t {
    acquire,  ///< phase one: `queue`, `ticket`, `attempt`, `proposed`
    confirm,  ///< phase two: `hold`, `fences`
    yield,    ///< hold nothing, and wait in line: `ticket`, `attempt`
    renew,
    heal,     ///< hold again what a majority has just confirmed: `fences`
    release,  ///< all that the owner has
    undo,     ///< the same, unless a later attempt took it: `attempt`
    look,     ///< say what you know about yourself
    wait,     ///< a new incarnation, `born`: may be repaired after `number` milliseconds
    repair,   ///< a new incarnation, `born`: is ready, with `number` as its counter
  };
  Kind kind = Kind::look;
  ClaimPtr claim{};  ///< none for look, wait and repair
  bool queue = false;
  std::uint64_t ticket = 0;    ///< what the nodes agreed on; 0: not yet
  std::uint64_t attempt = 0;   ///< of the client; larger than those of all its earlier rounds
  std::uint64_t proposed = 0;  ///< for a ticket to agree on
  std::uint64_t hold = 0;
  std::vector<std::uint64_t> fences{};
  std::string born{};
  std::uint64_t number = 0;
};

/// What the machines of one client know of its nodes.
struct RedlockNodes {
  std::vector<std::string> names{};  ///< for errors
  std::string where{};               ///< all of them
  NodeSet silent = 0;                ///< did not answer the last question

  [[nodiscard]] std::size_t size() const noexcept { return names.size(); }
  [[nodiscard]] std::size_t majority() const noexcept { return names.size() / 2 + 1; }
};

/// What a machine wants done: first the messages, in this order, and the answer last.
struct Steps {
  enum class Way : std::uint8_t {
    ask,     ///< the machine is told what the node said, or that it said nothing in time
    tell,    ///< nobody waits for an answer
    insist,  ///< again and again until the node has done it, or the TTL is over
  };
  struct Send {
    Way way = Way::ask;
    std::size_t node = 0;
    Message message{};
    /// Told or insisted on no more once its owner is released or asked for anew: what follows up on an
    /// answer would bring back what a release took away.
    bool until_closed = true;
  };
  std::vector<Send> sends{};
  std::optional<Answer> answer{};
  bool mend = false;        ///< nodes that lost their data; `mended` when that is over
  bool mend_aside = false;  ///< the same, and nobody waits for it
  /// Waits in line from now on.
  struct Waits {
    std::uint64_t ticket = 0;
    NodeSet free = 0;  ///< nodes that would have let it in
    std::uint64_t attempt = 0;
  };
  std::optional<Waits> waits{};
  bool stop_waiting = false;

  void send(Way way, std::size_t node, Message message, bool until_closed = true) {
    sends.push_back(
        {.way = way, .node = node, .message = std::move(message), .until_closed = until_closed});
  }
};

}  // namespace interlock::redis
