#include <algorithm>
#include <utility>

#include "backends/redis/redlock_store.hpp"
#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

using Said = Vote::Said;

/// One acquisition asks once:
///
///     asks all nodes --majority granted--> makes the fence known to those --majority--> granted
///        |    \--no majority can be had: gives back what it got, waits in all queues --> queued
///        |                                                   or leaves --> busy, unknown
///        '--nodes have lost their data: has them mended, and asks once more
class Redlock::Acquiring : public std::enable_shared_from_this<Acquiring> {
 public:
  Acquiring(Redlock& store, const Claim& claim, bool queue, Call call, Reply reply)
      : store_(store),
        claim_(claim),
        queue_(queue),
        call_(call),
        reply_(std::move(reply)),
        gate_(store.gates_.replace(claim.owner)),
        votes_(store.group_.size()),
        attempt_(store.attempts_.fetch_add(kMostRounds)) {}

  void start() {
    std::string words;
    int round = 0;
    {
      const std::lock_guard lock(mutex_);
      round = ++round_;
      stage_ = Stage::first;
      votes_ = Votes(group().size());
      ++attempt_;
      if (queue_) ticket_ = std::max(ticket_, store_.waiters_.ask(claim_.owner));
      words = extra() + ":" + std::to_string(queue_ ? store_.waiters_.propose() : 0) + ":" +
              std::string(Server::kRunDigits, '0');
    }
    const bool asked = gate_->unless_closed([&] {
      group().ask(
          group().everybody(), RedlockScripts::all().acquire,
          [&](std::size_t node) { return group().words(node, claim_, queue_, words); },
          store_.bounded(call_, claim_), gate_,
          [self = shared_from_this(), round](std::size_t node, const Outcome& outcome) {
            self->first(round, node, outcome);
          });
    });
    if (asked) return;
    {
      const std::lock_guard lock(mutex_);
      stage_ = Stage::over;
    }
    reply_(Answer::failed({Errc::unreachable,
                           "it was released or asked for again before all nodes had answered",
                           {.resource = {}, .node = store_.traits_.where, .maybe_held = true}}));
  }

 private:
  /// The first one, and after nodes were mended.
  static constexpr std::uint64_t kMostRounds = 2;

  enum class Stage : std::uint8_t { first, mending, second, granted, waits, over };
  using Lock = std::unique_lock<std::mutex>;

  RedlockGroup& group() { return store_.group_; }
  [[nodiscard]] std::string extra() const {
    return std::to_string(ticket_) + ":" + std::to_string(attempt_);
  }
  [[nodiscard]] std::size_t majority() const { return votes_.majority(); }

  void first(int round, std::size_t node, const Outcome& outcome) {
    Lock lock(mutex_);
    if (round != round_) return;
    votes_.set(node, Vote::read(outcome, claim_, store_.node_names_[node], true));
    switch (stage_) {
      case Stage::first:
        return decide(lock);
      case Stage::second:
      case Stage::granted:
        return confirm_late(node);
      case Stage::waits:
        return settle_in(node);
      case Stage::mending:
      case Stage::over:
        return;  // asks again; or released everywhere, after it was asked
    }
  }

  // Leaves the lock unlocked if there is something to say.
  void decide(Lock& lock) {
    const auto granted = votes_.count(Said::granted);
    const auto pending = votes_.count(Said::nothing);
    if (granted >= majority()) return begin_second(lock);
    const auto busy = votes_.count(Said::busy);
    const auto reached = granted + votes_.count(Said::queued) + busy;
    // Whoever did not answer before won't bring the majority now, if others hold it.
    const auto expected = reached < majority() ? pending : awake();
    if (granted + expected >= majority()) return;
    const auto lost = votes_.count(Said::lost);
    if (votes_.size() - lost < majority()) return give_up(lock, {.verdict = Verdict::lost});
    if (reached >= majority()) {
      // With a queue, a node says busy if waiting would never end.
      if (queue_ && reached - busy >= majority()) return begin_waiting(lock);
      if (queue_ && reached - busy + expected >= majority()) return;
      return give_up(lock, {.verdict = Verdict::busy});
    }
    if (reached + pending >= majority()) return;
    if (pending > 0 && votes_.size() - lost - pending < majority()) return;  // lost, perhaps
    if (votes_.count(Said::fresh) > 0 && !std::exchange(mended_, true)) return mend(lock);
    give_up(lock, Answer::failed(votes_.error("no majority", store_.node_names_)));
  }

  /// How many nodes have not answered yet and are likely to.
  [[nodiscard]] std::size_t awake() {
    const auto pending = votes_.who(Said::nothing);
    return static_cast<std::size_t>(
        std::count_if(pending.begin(), pending.end(),
                      [this](std::size_t node) { return !group().node(node).silent(); }));
  }

  void mend(Lock& lock) {
    stage_ = Stage::mending;
    lock.unlock();
    store_.mender_.mend([self = shared_from_this()] { self->start(); });
  }

  // Phase two: counts only nodes whose phase one counted, and that still hold it.
  void begin_second(Lock& lock) {
    if (votes_.count(Said::fresh) > 0) store_.mender_.mend([] {});
    fences_ = votes_.fences();
    const auto holders = votes_.who(Said::granted);
    const auto know =
        static_cast<std::size_t>(std::count_if(holders.begin(), holders.end(), [&](auto node) {
          return votes_[node].numbers == fences_;
        }));
    // A node that gave out this very number knows of it since phase one.
    if (claim_.instead_of.empty() && know >= majority()) {
      for (const auto node : holders) confirm_late(node);
      return grant(lock);
    }
    stage_ = Stage::second;
    confirmed_ = Votes(votes_.size());
    const auto skipped = group().everybody().size() - holders.size();
    unconfirmed_ = skipped;
    lock.unlock();
    group().ask(
        holders, RedlockScripts::all().confirm,
        [&](std::size_t node) { return confirmation(node); }, store_.bounded(call_, claim_), gate_,
        [self = shared_from_this()](std::size_t node, const Outcome& outcome) {
          self->second(node, outcome);
        });
  }

  [[nodiscard]] Words confirmation(std::size_t node) {
    return group().words(node, claim_, queue_,
                         std::to_string(votes_[node].hold) + ":" + join(fences_));
  }

  void second(std::size_t node, const Outcome& outcome) {
    Lock lock(mutex_);
    auto vote = Vote::read_failure(outcome, store_.node_names_[node], RedlockScripts::all().confirm)
                    .value_or(Vote{});
    if (!vote.error) {
      const auto words = elements_of(*outcome.reply);
      const bool good = words.size() == 1 && text_of(*words[0]) == "ok";
      vote.said = good ? Said::granted : Said::lost;
    }
    if (vote.said != Said::granted) ++unconfirmed_;
    confirmed_.set(node, std::move(vote));
    if (stage_ != Stage::second) return;
    if (confirmed_.count(Said::granted) >= majority()) return grant(lock);
    if (votes_.size() - unconfirmed_ >= majority()) return;
    give_up(lock, Answer::failed(confirmed_.error("a majority granted it, but did not confirm it",
                                                  store_.node_names_)));
  }

  // A node that answered after the majority did: it shall know the fence, too.
  void confirm_late(std::size_t node) {
    const auto& vote = votes_[node];
    if (vote.said != Said::granted) return;
    if (vote.numbers == fences_ && claim_.instead_of.empty()) return;
    group().tell(node, RedlockScripts::all().confirm, confirmation(node), claim_.ttl, gate_);
  }

  void grant(Lock& lock) {
    stage_ = Stage::granted;
    drop_predecessor();
    Answer answer{.verdict = Verdict::granted};
    for (const auto fence : fences_) answer.fences.push_back(Fence{fence});
    lock.unlock();
    stop_waiting();
    reply_(std::move(answer));
  }

  // What it took over has ended, also on nodes that did not grant it.
  void drop_predecessor() {
    if (claim_.instead_of.empty()) return;
    auto predecessor = claim_;
    predecessor.owner = std::exchange(predecessor.instead_of, Owner{});
    for (const auto node : group().everybody()) {
      if (votes_[node].said == Said::granted) continue;
      group().insist(node, RedlockScripts::all().release,
                     group().words_to_release(node, predecessor), claim_.ttl, nullptr);
    }
  }

  // Holds nothing anywhere, and stands in all queues with one number.
  void begin_waiting(Lock& lock) {
    if (ticket_ == 0) {
      std::uint64_t largest = 0;
      for (std::size_t node = 0; node < votes_.size(); ++node)
        largest = std::max(largest, votes_[node].ticket);
      ticket_ = store_.waiters_.number(largest);
    }
    stage_ = Stage::waits;
    NodeSet yielded = 0;
    for (std::size_t node = 0; node < votes_.size(); ++node) {
      if (votes_[node].said == Said::granted) yielded |= bit(node);
      settle_in(node);
    }
    const auto answer = queued_answer();
    const auto ticket = ticket_;
    lock.unlock();
    const bool now = store_.waiters_.wait(claim_.owner, ticket, yielded);
    listen();
    reply_(answer);
    if (now) store_.sink_(claim_.owner);
  }

  void settle_in(std::size_t node) {
    const auto& vote = votes_[node];
    const bool settled = vote.said == Said::queued && vote.ticket == ticket_;
    if (settled || (vote.said != Said::granted && vote.said != Said::queued)) return;
    group().tell(node, RedlockScripts::all().yield, group().words(node, claim_, true, extra()),
                 claim_.ttl, gate_);
  }

  [[nodiscard]] Answer queued_answer() const {
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

  // The first ones of a client to wait: what was published before a majority could tell it reached nobody.
  void listen() {
    struct Ears {
      std::mutex mutex;
      std::size_t open = 0;
      bool late = false;
    };
    const auto heard = [self = shared_from_this(), ears = std::make_shared<Ears>()](bool late) {
      {
        const std::lock_guard guard(ears->mutex);
        ears->late = ears->late || late;
        if (++ears->open != self->majority() || !ears->late) return;
      }
      self->store_.sink_(self->claim_.owner);
    };
    for (const auto node : group().everybody()) {
      if (group().node(node).server().listen([heard] { heard(true); })) heard(false);
    }
  }

  void give_up(Lock& lock, Answer answer) {
    stage_ = Stage::over;
    // In a round before, nodes may have answered.
    answer.unsent = answer.verdict == Verdict::unknown && round_ == 1 && votes_.unsent();
    const bool nothing_there =
        votes_.count(Said::busy) + votes_.count(Said::lost) + votes_.count(Said::fresh) ==
            votes_.size() ||
        answer.unsent;
    lock.unlock();
    if (!claim_.instead_of.empty()) {
      // Undone, it would end the hold where it took over.
      answer.partly = !nothing_there;
    } else if (!nothing_there) {
      // Also where no answer came from: it may be done there later.
      undo();
    }
    stop_waiting();
    reply_(std::move(answer));
  }

  // Gives back, on every node, what this call took. A newer call of the same owner has taken that
  // over: its number is larger, and nothing passes the gate any more once it has begun.
  void undo() {
    for (const auto node : group().everybody()) {
      group().insist(node, RedlockScripts::all().release,
                     group().words(node, claim_, false, std::to_string(attempt_)), claim_.ttl,
                     gate_);
    }
  }

  void stop_waiting() {
    gate_->unless_closed([this] { store_.waiters_.forget(claim_.owner); });
  }

  Redlock& store_;
  const Claim claim_;
  const bool queue_;
  const Call call_;
  const Reply reply_;
  const RedlockGroup::GatePtr gate_;
  std::mutex mutex_;
  Stage stage_ = Stage::first;
  int round_ = 0;
  bool mended_ = false;
  Votes votes_;
  Votes confirmed_{0};
  std::size_t unconfirmed_ = 0;
  std::vector<std::uint64_t> fences_;
  std::uint64_t ticket_ = 0;
  /// Of this round; larger than those of all earlier calls, and smaller than those of later ones.
  std::uint64_t attempt_;
};

void Redlock::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  if (auto error = refusal(claim)) return reply(Answer::failed(std::move(*error)));
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  std::make_shared<Acquiring>(*this, claim, queue, call, std::move(reply))->start();
}

}  // namespace interlock::redis
