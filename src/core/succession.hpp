// Which of two claims the store has while a lease changes its modes, and how to find out.
//
// A change asks for the same resources in other modes, as a new owner that takes over from the old
// one in one step (Claim::instead_of). The answer may be lost, or come late. Until it is certain,
// the store has the lease's claim or its successor, and a call under way may still turn one into the
// other. So nothing is released then: that could end the hold. Instead the successor is asked for
// again, in the weaker of the old and the new modes, which the store grants at once.
//
//     phase    | event                                    | next     | step
//     ---------+------------------------------------------+----------+---------------------------------
//     settled  | begin                                    | asking   | ask for the successor
//     asking   | granted                                  | settled  | (the successor is the claim)
//     asking   | refused, and no other call is under way  | settled  | (the claim is as before)
//     settled  | a renewal says lost, though one was      | settling | ask, in the weaker modes: a
//              | refused                                  |          | copy of it may have come late
//     asking   | give up: whatever else ends the question | settling | ask, in the weaker modes
//     settling | granted, and no stronger modes had been  | settled  | (the successor is the claim)
//              | asked for                                |          |
//     settling | granted, but perhaps by an earlier call  | settling | ask for a fresh successor, which
//              | in the stronger modes                    |          | takes over in the weaker modes
//     settling | lost: the store has neither              |          | (the lease is lost)
//     settling | any other answer, or none                | settling | ask again
//
// Released in order: first the claim, then the successor. Once the claim has gone, no late copy of
// the question can take over from it.
//
// A plain state machine like LeaseMachine. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::core {

class Succession {
 public:
  enum class Phase : std::uint8_t { settled, asking, settling };
  /// What an answer to the question of the phase `settling` says.
  enum class Found : std::uint8_t {
    nothing,  ///< about the question that is open now
    held,     ///< the store has the successor, since the question was sent
    lost,     ///< the store has neither
  };

  /// `fresh`: an owner that nobody has had yet.
  explicit Succession(Claim claim, std::function<Owner()> fresh = &Owner::random)
      : claim_(std::move(claim)), fresh_(std::move(fresh)) {}

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  /// By the last certain answer.
  [[nodiscard]] const Claim& claim() const noexcept { return claim_; }
  /// What may have taken over since, or do so; none if that can't be. While settled, it was refused.
  [[nodiscard]] const std::optional<Claim>& successor() const noexcept { return successor_; }
  /// Held for certain: while two modes are possible, the weaker one.
  [[nodiscard]] Mode mode(const Part& part) const noexcept;

  /// For what does not touch its owner or its modes. Only while settled.
  [[nodiscard]] Claim& edit() noexcept { return claim_; }

  /// Asks for `next`. It lasts at least `at_least`, so that a change takes away no time that was
  /// given already.
  void begin(Claim next, Duration at_least);
  void granted();
  void refused();
  void give_up();
  /// A renewal of the claim says lost. False: so it is.
  bool doubt();
  /// `asked`: the owner of the question.
  Found answered(const Owner& asked, Verdict verdict);

 private:
  void become_claim();
  void ask_for_less();

  Phase phase_ = Phase::settled;
  Claim claim_;
  std::function<Owner()> fresh_;
  std::optional<Claim> successor_;
  bool maybe_stronger_ = false;  // than what is asked for now
};

}  // namespace interlock::core
