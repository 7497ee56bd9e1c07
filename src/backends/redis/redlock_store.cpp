#include "backends/redis/redlock_store.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

namespace {

using Said = Vote::Said;

// Below this, the two milliseconds that are taken off for clocks would be cut to a fifth.
constexpr Duration kShortestTtl = std::chrono::milliseconds(20);

}  // namespace

std::optional<Error> Redlock::refusal(const Claim& claim) const {
  for (const auto& part : claim.parts) {
    if (part.mode == Mode::slots) {
      return Error(Errc::unsupported, kNoSlots,
                   {.resource = part.resource, .node = traits_.where, .maybe_held = false});
    }
  }
  if (claim.ttl < kShortestTtl) {
    return Error(
        Errc::invalid_ttl, "a Redlock needs a TTL of at least 20ms",
        {.resource = claim.parts.front().resource, .node = traits_.where, .maybe_held = false});
  }
  return bad_name(claim);
}

std::optional<Error> Redlock::bad_name(const Claim& claim) const {
  try {
    for (const auto& part : claim.parts) (void)group_.names().of(part.resource);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

class Redlock::Renewing : public std::enable_shared_from_this<Renewing> {
 public:
  Renewing(Redlock& store, const Claim& claim, Reply reply)
      : store_(store),
        claim_(claim),
        reply_(std::move(reply)),
        gate_(store.gates_.add(claim.owner)),
        votes_(store.group_.size()) {}

  void start(Call call) {
    auto& group = store_.group_;
    group.ask(
        group.everybody(), RedlockScripts::all().renew,
        [&](std::size_t node) { return group.words(node, claim_, false, ""); }, call, nullptr,
        [self = shared_from_this()](std::size_t node, const Outcome& outcome) {
          self->told(node, outcome);
        });
  }

 private:
  void told(std::size_t node, const Outcome& outcome) {
    std::unique_lock lock(mutex_);
    votes_.set(node, Vote::read(outcome, claim_, store_.node_names_[node], false));
    if (over_) {
      if (!fences_.empty()) heal(node);
      return;
    }
    const auto confirmed = votes_.count(Said::granted);
    if (confirmed >= votes_.majority()) {
      over_ = true;
      const auto fences = votes_.agreed_fences();
      // Of an identity, a node may know a larger one, which another of its claims has got.
      if (claim_.who && !claim_.who->identity.empty()) {
        fences_ = votes_.fences();
      } else {
        for (const auto fence : fences) fences_.push_back(fence.value);
      }
      for (std::size_t each = 0; each < votes_.size(); ++each) heal(each);
      lock.unlock();
      return reply_({.verdict = Verdict::granted, .fences = fences});
    }
    const auto pending = votes_.count(Said::nothing);
    const auto lost = votes_.count(Said::lost);
    if (confirmed + pending >= votes_.majority()) return;
    const bool is_lost = votes_.size() - lost < votes_.majority();
    if (!is_lost && pending > 0 && votes_.size() - lost - pending < votes_.majority()) return;
    over_ = true;
    auto answer = is_lost
                      ? Answer{.verdict = Verdict::lost}
                      : Answer::failed(votes_.error("no majority renewed it", store_.node_names_));
    lock.unlock();
    reply_(std::move(answer));
  }

  // In the same round in which a majority confirmed it, and in no other: so it is not created.
  void heal(std::size_t node) {
    if (votes_[node].said != Said::lost) return;
    store_.group_.tell(node, RedlockScripts::all().heal,
                       store_.group_.words(node, claim_, false, join(fences_)), claim_.ttl, gate_);
  }

  Redlock& store_;
  const Claim claim_;
  const Reply reply_;
  const RedlockGroup::GatePtr gate_;
  std::mutex mutex_;
  bool over_ = false;
  Votes votes_;
  std::vector<std::uint64_t> fences_;
};

void Redlock::renew(const Claim& claim, Call call, Reply reply) {
  if (auto error = refusal(claim)) return reply(Answer::failed(std::move(*error)));
  std::make_shared<Renewing>(*this, claim, std::move(reply))->start(bounded(call, claim));
}

class Redlock::Releasing : public std::enable_shared_from_this<Releasing> {
 public:
  Releasing(Redlock& store, const Claim& claim, Reply reply)
      : store_(store), claim_(claim), reply_(std::move(reply)), votes_(store.group_.size()) {}

  void start(Call call) {
    auto& group = store_.group_;
    group.ask(
        group.everybody(), RedlockScripts::all().release,
        [&](std::size_t node) { return group.words_to_release(node, claim_); }, call, nullptr,
        [self = shared_from_this()](std::size_t node, const Outcome& outcome) {
          self->told(node, outcome);
        });
  }

 private:
  void told(std::size_t node, const Outcome& outcome) {
    std::unique_lock lock(mutex_);
    auto vote = Vote::read_failure(outcome, store_.node_names_[node], RedlockScripts::all().release)
                    .value_or(Vote{});
    if (!vote.error) {
      const auto found = release_answer(*outcome.reply).verdict;
      vote.said = found == Verdict::granted  ? Said::granted
                  : found == Verdict::queued ? Said::queued
                                             : Said::lost;
    }
    // A majority may have released it, and it would be in everybody's way on this node.
    if (vote.error) {
      store_.group_.insist(node, RedlockScripts::all().release,
                           store_.group_.words_to_release(node, claim_), claim_.ttl, nullptr);
    }
    votes_.set(node, std::move(vote));
    if (over_) return;
    auto answer = decide();
    if (!answer) return;
    over_ = true;
    lock.unlock();
    reply_(std::move(*answer));
  }

  [[nodiscard]] std::optional<Answer> decide() const {
    const auto held = votes_.count(Said::granted);
    const auto pending = votes_.count(Said::nothing);
    const auto failed = votes_.count(Said::failed);
    if (held >= votes_.majority()) return Answer{.verdict = Verdict::granted};
    if (held + pending >= votes_.majority()) return std::nullopt;
    if (votes_.size() - pending - failed < votes_.majority()) {
      if (pending > 0) return std::nullopt;
      return Answer::failed(votes_.error("no majority confirmed the release", store_.node_names_));
    }
    // Perhaps held by a majority, one of which can't say so.
    if (held > 0 && held + failed + pending >= votes_.majority())
      return pending > 0 ? std::nullopt : std::optional(Answer{.verdict = Verdict::granted});
    return Answer{.verdict = votes_.count(Said::queued) > 0 ? Verdict::queued : Verdict::lost};
  }

  Redlock& store_;
  const Claim claim_;
  const Reply reply_;
  std::mutex mutex_;
  bool over_ = false;
  Votes votes_;
};

void Redlock::release(const Claim& claim, Call call, Reply reply) {
  waiters_.forget(claim.owner);
  gates_.close(claim.owner);
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  if (auto error = bad_name(claim)) return reply(Answer::failed(std::move(*error)));
  std::make_shared<Releasing>(*this, claim, std::move(reply))->start(call);
}

}  // namespace interlock::redis
