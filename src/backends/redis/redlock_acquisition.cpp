#include "backends/redis/redlock_acquisition.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

using Said = Vote::Said;
using Kind = Message::Kind;
using Way = Steps::Way;

RedlockAcquisition::RedlockAcquisition(const RedlockNodes& nodes, RedlockWaiters& waiters,
                                       ClaimPtr claim, bool queue, std::uint64_t attempt)
    : nodes_(nodes),
      waiters_(waiters),
      claim_(std::move(claim)),
      queue_(queue),
      attempt_(attempt),
      votes_(nodes.size()) {}

void RedlockAcquisition::begin(std::uint64_t clock, Steps& steps) {
  ++round_;
  ++attempt_;
  stage_ = Stage::first;
  votes_ = Votes(nodes_.size());
  if (queue_) ticket_ = std::max(ticket_, waiters_.ask(claim_->owner));
  auto asks = message(Kind::acquire);
  if (queue_) asks.proposed = waiters_.propose(clock);
  for (std::size_t node = 0; node < nodes_.size(); ++node) steps.send(Way::ask, node, asks);
}

void RedlockAcquisition::refuse(Steps& steps) {
  stage_ = Stage::over;
  steps.answer = Answer::failed({Errc::unreachable,
                                 "it was released or asked for again before all nodes had answered",
                                 {.resource = {}, .node = nodes_.where, .maybe_held = true}});
}

void RedlockAcquisition::first(std::uint64_t attempt, std::size_t node, Vote vote, Steps& steps) {
  if (attempt != attempt_) return;
  votes_.set(node, std::move(vote));
  switch (stage_) {
    case Stage::first:
      return decide(steps);
    case Stage::second:
    case Stage::granted:
      return confirm_late(node, steps);
    case Stage::waits:
      return settle_in(node, steps);
    case Stage::begun:
    case Stage::mending:
    case Stage::over:
      return;  // asks again; or released everywhere, after it was asked
  }
}

void RedlockAcquisition::decide(Steps& steps) {
  const auto granted = votes_.count(Said::granted);
  const auto pending = votes_.count(Said::nothing);
  if (granted >= majority()) return begin_second(steps);
  const auto busy = votes_.count(Said::busy);
  const auto reached = granted + votes_.count(Said::queued) + busy;
  // Nodes that did not answer before won't bring the majority now, if others hold it.
  const auto expected = reached < majority() ? pending : awake();
  if (granted + expected >= majority()) return;
  const auto lost = votes_.count(Said::lost);
  if (votes_.size() - lost < majority()) return give_up({.verdict = Verdict::lost}, steps);
  if (reached >= majority()) {
    // With a queue, a node says busy if waiting would never end.
    if (queue_ && reached - busy >= majority()) return begin_waiting(steps);
    if (queue_ && reached - busy + expected >= majority()) return;
    return give_up({.verdict = Verdict::busy}, steps);
  }
  if (reached + pending >= majority()) return;
  if (pending > 0 && votes_.size() - lost - pending < majority()) return;  // lost, perhaps
  if (votes_.count(Said::fresh) > 0 && !std::exchange(mended_, true)) {
    stage_ = Stage::mending;
    steps.mend = true;
    return;
  }
  give_up(Answer::failed(votes_.error("no majority", nodes_.names)), steps);
}

// How many nodes have not answered yet and are likely to.
std::size_t RedlockAcquisition::awake() const {
  const auto pending = votes_.who(Said::nothing);
  return static_cast<std::size_t>(
      std::count_if(pending.begin(), pending.end(),
                    [this](std::size_t node) { return (nodes_.silent & bit(node)) == 0; }));
}

void RedlockAcquisition::begin_second(Steps& steps) {
  steps.mend_aside = votes_.count(Said::fresh) > 0;
  fences_ = votes_.fences();
  const auto holders = votes_.who(Said::granted);
  const auto know =
      static_cast<std::size_t>(std::count_if(holders.begin(), holders.end(), [&](std::size_t node) {
        return votes_[node].numbers == fences_;
      }));
  // A node that gave out this very number knows of it since phase one.
  if (claim_->instead_of.empty() && know >= majority()) {
    for (const auto node : holders) confirm_late(node, steps);
    return grant(steps);
  }
  stage_ = Stage::second;
  confirmed_ = Votes(votes_.size());
  unconfirmed_ = votes_.size() - holders.size();
  for (const auto node : holders) confirm(Way::ask, node, steps);
}

void RedlockAcquisition::confirm(Way way, std::size_t node, Steps& steps) const {
  auto confirms = message(Kind::confirm);
  confirms.hold = votes_[node].hold;
  confirms.fences = fences_;
  steps.send(way, node, std::move(confirms));
}

void RedlockAcquisition::second(std::size_t node, Vote vote, Steps& steps) {
  if (vote.said != Said::granted) ++unconfirmed_;
  confirmed_.set(node, std::move(vote));
  if (stage_ != Stage::second) return;
  if (confirmed_.count(Said::granted) >= majority()) return grant(steps);
  if (votes_.size() - unconfirmed_ >= majority()) return;
  give_up(Answer::failed(
              confirmed_.error("a majority granted it, but did not confirm it", nodes_.names)),
          steps);
}

// A node that answered after the majority did: it shall know the fence, too.
void RedlockAcquisition::confirm_late(std::size_t node, Steps& steps) const {
  const auto& vote = votes_[node];
  if (vote.said != Said::granted) return;
  if (vote.numbers == fences_ && claim_->instead_of.empty()) return;
  confirm(Way::tell, node, steps);
}

void RedlockAcquisition::grant(Steps& steps) {
  stage_ = Stage::granted;
  drop_predecessor(steps);
  Answer answer{.verdict = Verdict::granted};
  for (const auto fence : fences_) answer.fences.push_back(Fence{fence});
  steps.stop_waiting = true;
  steps.answer = std::move(answer);
}

// What it took over has ended, also on nodes that did not grant it.
void RedlockAcquisition::drop_predecessor(Steps& steps) const {
  if (claim_->instead_of.empty()) return;
  auto predecessor = std::make_shared<Claim>(*claim_);
  predecessor->owner = std::exchange(predecessor->instead_of, Owner{});
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (votes_[node].said == Said::granted) continue;
    steps.send(Way::insist, node, {.kind = Kind::release, .claim = predecessor}, false);
  }
}

// Holds nothing anywhere, and stands in all queues with one number.
void RedlockAcquisition::begin_waiting(Steps& steps) {
  if (ticket_ == 0) {
    std::uint64_t largest = 0;
    for (std::size_t node = 0; node < votes_.size(); ++node)
      largest = std::max(largest, votes_[node].ticket);
    ticket_ = waiters_.number(largest);
  }
  stage_ = Stage::waits;
  NodeSet yielded = 0;
  for (std::size_t node = 0; node < votes_.size(); ++node) {
    if (votes_[node].said == Said::granted) yielded |= bit(node);
    settle_in(node, steps);
  }
  steps.waits = {.ticket = ticket_, .free = yielded, .attempt = attempt_};
  steps.answer = queued_answer();
}

void RedlockAcquisition::settle_in(std::size_t node, Steps& steps) const {
  const auto& vote = votes_[node];
  const bool settled = vote.said == Said::queued && vote.ticket == ticket_;
  if (settled || (vote.said != Said::granted && vote.said != Said::queued)) return;
  auto yields = message(Kind::yield);
  yields.queue = true;
  steps.send(Way::tell, node, std::move(yields));
}

Answer RedlockAcquisition::queued_answer() const {
  std::vector<std::uint32_t> places;
  std::vector<Duration> looks;
  for (std::size_t node = 0; node < votes_.size(); ++node) {
    const auto& vote = votes_[node];
    if (vote.said != Said::granted && vote.said != Said::queued) continue;
    places.push_back(vote.place);
    looks.push_back(vote.look);
  }
  std::sort(places.begin(), places.end());
  std::sort(looks.begin(), looks.end());
  // When so many are out of the way, it is its turn.
  return {.verdict = Verdict::queued,
          .fences = {},
          .place = places[majority() - 1],
          .look_again = looks[majority() - 1]};
}

void RedlockAcquisition::give_up(Answer answer, Steps& steps) {
  stage_ = Stage::over;
  // In a round before, nodes may have answered.
  answer.unsent = answer.verdict == Verdict::unknown && round_ == 1 && votes_.unsent();
  const bool nothing_there =
      votes_.count(Said::busy) + votes_.count(Said::lost) + votes_.count(Said::fresh) ==
          votes_.size() ||
      answer.unsent;
  if (!claim_->instead_of.empty()) {
    answer.partly = !nothing_there;
  } else if (!nothing_there) {
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      steps.send(Way::insist, node, message(Kind::undo));
  }
  steps.stop_waiting = true;
  steps.answer = std::move(answer);
}

}  // namespace interlock::redis
