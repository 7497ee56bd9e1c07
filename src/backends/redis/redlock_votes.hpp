// What the nodes of a Redlock said to one call, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/redlock_message.hpp"

namespace interlock::redis {

/// What a node knows about itself.
struct NodeState {
  bool ready = false;
  std::uint64_t count = 0;
  Duration holds{};                ///< until its last hold ends
  std::optional<Duration> wait{};  ///< new: until it may be repaired
  std::uint64_t clock = 0;         ///< in microseconds
  std::string born{};              ///< its incarnation
};

struct Vote {
  enum class Said : std::uint8_t {
    nothing,  ///< not answered yet
    granted,  ///< of phase two: it still has this very hold
    queued,
    busy,
    lost,    ///< knows nothing of this owner, or only a part
    fresh,   ///< it lost its data, and does not count
    failed,  ///< `error` says why
    state,   ///< `state` says what it knows about itself
  };
  Said said = Said::nothing;
  std::uint64_t hold = 0;                ///< granted: the number of this hold on this node
  std::vector<std::uint64_t> numbers{};  ///< granted: one for each part
  std::uint64_t ticket = 0;              ///< queued
  std::uint32_t place = 0;
  Duration look{};                   ///< queued: how long something in the way lasts at most
  std::optional<Duration> counts{};  ///< fresh: counts again in so long, if that is known
  std::optional<Error> error{};
  bool asked = true;    ///< failed: the question has left for the node
  bool replied = true;  ///< failed: with an error that the node sent
  NodeState state{};

  /// The node did not reply. `asked`: the question may have reached it.
  static Vote failed(Error error, bool asked) {
    auto vote = refused(std::move(error));
    vote.asked = asked;
    vote.replied = false;
    return vote;
  }
  /// The node replied with an error, or with something that makes no sense.
  static Vote refused(Error error) {
    Vote vote{.said = Said::failed};
    vote.error = std::move(error);
    return vote;
  }
  /// The node replied that it does not know the script, and the message was not sent again.
  static Vote withdrawn() {
    auto vote = refused({Errc::unreachable, "released meanwhile"});
    vote.asked = false;
    return vote;
  }
  [[nodiscard]] std::string describe() const;
};

class Votes {
 public:
  explicit Votes(std::size_t nodes) : votes_(nodes) {}

  void set(std::size_t node, Vote vote) { votes_[node] = std::move(vote); }
  [[nodiscard]] const Vote& operator[](std::size_t node) const { return votes_[node]; }
  [[nodiscard]] std::size_t size() const noexcept { return votes_.size(); }
  [[nodiscard]] std::size_t majority() const noexcept { return votes_.size() / 2 + 1; }
  [[nodiscard]] std::size_t count(Vote::Said said) const;
  [[nodiscard]] std::vector<std::size_t> who(Vote::Said said) const;

  /// Phase one's: for each part the largest number that a node which granted it knows.
  [[nodiscard]] std::vector<std::uint64_t> fences() const;
  /// A hold's, once it is granted: what most nodes that hold it say.
  [[nodiscard]] std::vector<Fence> agreed_fences() const;

  /// Nothing of the question has left for any node.
  [[nodiscard]] bool unsent() const;
  /// Why there is no majority, with what each node said. `names`: of the nodes.
  [[nodiscard]] Error error(const std::string& what, const std::vector<std::string>& names) const;

 private:
  std::vector<Vote> votes_;
};

/// What so many of the nodes refuse that the others are no majority, if all of them say the same.
std::optional<Error> refusal_of(const std::vector<Error>& refusals, std::size_t nodes);

}  // namespace interlock::redis
