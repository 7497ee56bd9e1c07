// What the nodes of a Redlock said to one call, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/protocol.hpp"
#include "backends/redis/scripts.hpp"
#include "interlock/backend.hpp"

namespace interlock::redis {

struct Vote {
  enum class Said : std::uint8_t {
    nothing,  ///< not answered yet
    granted,
    queued,
    busy,
    lost,    ///< knows nothing of this owner, or only a part
    fresh,   ///< it lost its data, and does not count
    failed,  ///< `error` says why
  };
  Said said = Said::nothing;
  std::uint64_t hold = 0;                ///< granted: the number of this hold on this node
  std::vector<std::uint64_t> numbers{};  ///< granted: one for each part
  std::uint64_t ticket = 0;              ///< queued
  std::uint32_t place = 0;
  Duration look{};                   ///< queued: how long something in the way lasts at most
  std::optional<Duration> counts{};  ///< fresh: counts again in so long, if that is known
  std::optional<Error> error{};
  bool asked = true;  ///< failed: the question has left for the node

  /// The answer of a node to phase one or to a renewal.
  static Vote read(const Outcome& outcome, const Claim& claim, const std::string& node,
                   bool has_hold);
  /// The node did not answer, or with an error; nothing if it did. `script`: what it was to run.
  static std::optional<Vote> read_failure(const Outcome& outcome, const std::string& node,
                                          const Script& script);
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

/// Numbers as a script takes them.
std::string join(const std::vector<std::uint64_t>& numbers);

}  // namespace interlock::redis
