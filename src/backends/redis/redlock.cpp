#include "backends/redis/redlock.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "backends/redis/inspection.hpp"
#include "backends/redis/redlock_group.hpp"
#include "backends/redis/redlock_inspection.hpp"
#include "backends/redis/redlock_mender.hpp"
#include "backends/redis/redlock_votes.hpp"

namespace interlock::redis {

namespace {

using std::chrono::milliseconds;
using Said = Vote::Said;
using NodeSet = std::uint64_t;  // a bit for each node

constexpr std::size_t kMostNodes = 31;
// Below this, the two milliseconds that are taken off for clocks would be cut to a fifth.
constexpr Duration kShortestTtl = milliseconds(20);
constexpr Duration kShortestPatience = milliseconds(20);

constexpr const char* kNoSlots =
    "a Redlock has no semaphores: with three nodes, three holders of two slots are possible, since "
    "each pair of them may meet on another node; use redis:// on one server, or a lock per slot";

NodeSet bit(std::size_t node) { return NodeSet{1} << node; }

std::string join(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

/// Those who wait through this client: when to ask again.
class Waiters {
 public:
  explicit Waiters(std::size_t majority) : majority_(majority) {}

  /// A number for one that begins to wait, not below this: those of one client stay in order,
  /// whichever nodes answered them first.
  std::uint64_t number(std::uint64_t least) {
    const std::lock_guard lock(mutex_);
    return last_ticket_ = std::max(least, last_ticket_ + 1);
  }
  /// The number that the nodes agreed on; 0: none yet.
  std::uint64_t ask(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    auto& waiter = waiting_[owner];
    waiter.asking = true;
    waiter.free = 0;
    return waiter.ticket;
  }
  /// It waits on, and these nodes were free for it. True: enough are by now.
  bool wait(const Owner& owner, std::uint64_t ticket, NodeSet free) {
    const std::lock_guard lock(mutex_);
    auto& waiter = waiting_[owner];
    waiter.ticket = ticket;
    waiter.free |= free;
    waiter.asking = false;
    return enough(waiter);
  }
  /// A node says that it is this one's turn. True: so do enough of them.
  bool turn(const Owner& owner, std::size_t node) {
    const std::lock_guard lock(mutex_);
    if (const auto it = waiting_.find(owner); it != waiting_.end()) {
      it->second.free |= bit(node);
      return !it->second.asking && enough(it->second);
    }
    // A holder that was evicted, or one that does not wait yet.
    if (others_.size() > kMostOthers) others_.clear();
    const auto said = others_[owner] |= bit(node);
    if (std::popcount(said) < static_cast<int>(majority_)) return false;
    others_.erase(owner);
    return true;
  }
  void forget(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(owner);
  }

 private:
  static constexpr std::size_t kMostOthers = 1000;
  struct Waiter {
    std::uint64_t ticket = 0;
    NodeSet free = 0;
    bool asking = false;
  };
  [[nodiscard]] bool enough(const Waiter& waiter) const {
    return std::popcount(waiter.free) >= static_cast<int>(majority_);
  }

  const std::size_t majority_;
  std::mutex mutex_;
  std::unordered_map<Owner, Waiter> waiting_;
  std::unordered_map<Owner, NodeSet> others_;
  std::uint64_t last_ticket_ = 0;
};

/// The gates of calls that may still send something.
class Gates {
 public:
  using Gate = RedlockGroup::Gate;

  /// For one call. Known here as long as anybody has it.
  std::shared_ptr<Gate> add(const Owner& owner) {
    std::shared_ptr<Gate> gate(new Gate, [this, owner](Gate* ended) {
      remove(owner, ended);
      delete ended;
    });
    const std::lock_guard lock(mutex_);
    gates_.emplace(owner, gate.get());
    return gate;
  }
  /// It is being released.
  void close(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = gates_.equal_range(owner);
    std::for_each(begin, end, [](const auto& one) { one.second->close(); });
  }

 private:
  void remove(const Owner& owner, const Gate* gate) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = gates_.equal_range(owner);
    const auto it = std::find_if(begin, end, [&](const auto& one) { return one.second == gate; });
    if (it != end) gates_.erase(it);
  }

  std::mutex mutex_;
  std::unordered_multimap<Owner, Gate*> gates_;
};

class Redlock final : public Backend {
 public:
  Redlock(const std::string& prefix, const std::vector<RedlockGroup::Member>& members,
          Traits traits)
      : traits_(std::move(traits)),
        waiters_(members.size() / 2 + 1),
        mender_(group_),
        group_(
            prefix, members,
            [this](std::size_t node, const Owner& owner) {
              if (waiters_.turn(owner, node)) sink_(owner);
            },
            [this](const Error& warning) { warn_(warning); }) {
    for (const auto& member : members) node_names_.push_back(member.name);
  }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override {
    call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout / 2);
    RedlockInspection::start(group_, query, call, std::move(report));
  }
  void on_wake(WakeSink sink) override { sink_ = std::move(sink); }
  void on_warning(const WarnSink& sink) override {
    warn_ = sink;
    warn_of(traits_.warnings, traits_.where, warn_);
  }
  void lend(Signal& signal, TimePoint until) override { group_.loop().lend(signal, until); }

 private:
  class Acquiring;
  class Renewing;
  class Releasing;

  /// How long a node may take: a fraction of the TTL, so that one that hangs does not cost the
  /// lease.
  [[nodiscard]] Call bounded(Call call, const Claim& claim) const {
    const auto patience = std::clamp(claim.ttl / 4, kShortestPatience, traits_.call_timeout);
    call.deadline = std::min(call.deadline, BootClock::now() + patience);
    return call;
  }
  [[nodiscard]] std::optional<Error> refusal(const Claim& claim) const;
  [[nodiscard]] std::optional<Error> bad_name(const Claim& claim) const;
  /// Gives back, on every node, what this attempt and those before it took.
  void undo(const Claim& claim, std::uint64_t attempt);

  Traits traits_;
  std::vector<std::string> node_names_;
  Waiters waiters_;
  Gates gates_;
  std::atomic<std::uint64_t> attempts_ = 0;
  WakeSink sink_ = [](const Owner&) {};
  WarnSink warn_ = [](const Error&) {};
  RedlockMender mender_;
  RedlockGroup group_;  ///< the first to end: it reports to all of the above
};

std::optional<Error> Redlock::refusal(const Claim& claim) const {
  for (const auto& part : claim.parts) {
    if (part.mode == Mode::slots) {
      return Error(Errc::unsupported, kNoSlots,
                   {.resource = part.resource, .node = traits_.where, .maybe_held = false});
    }
  }
  if (claim.ttl < kShortestTtl) {
    return Error(
        Errc::invalid, "a Redlock needs a TTL of at least 20ms",
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

void Redlock::undo(const Claim& claim, std::uint64_t attempt) {
  for (const auto node : group_.everybody()) {
    group_.tell(node, RedlockScripts::all().release,
                group_.words(node, claim, false, std::to_string(attempt)), claim.ttl, nullptr);
  }
}

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
        gate_(store.gates_.add(claim.owner)),
        votes_(store.group_.size()) {}

  void start() {
    std::string words;
    int round = 0;
    {
      const std::lock_guard lock(mutex_);
      round = ++round_;
      stage_ = Stage::first;
      votes_ = Votes(group().size());
      attempt_ = ++store_.attempts_;
      if (queue_) ticket_ = std::max(ticket_, store_.waiters_.ask(claim_.owner));
      words = extra();
    }
    group().ask(
        group().everybody(), RedlockScripts::all().acquire,
        [&](std::size_t node) { return group().words(node, claim_, queue_, words); },
        store_.bounded(call_, claim_), gate_,
        [self = shared_from_this(), round](std::size_t node, const Outcome& outcome) {
          self->first(round, node, outcome);
        });
  }

 private:
  enum class Stage : std::uint8_t { first, mending, listening, second, granted, waits, over };
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
      case Stage::listening:
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
    store_.waiters_.forget(claim_.owner);
    reply_(std::move(answer));
  }

  // What it took over has ended, also on nodes that did not grant it.
  void drop_predecessor() {
    if (claim_.instead_of.empty()) return;
    auto predecessor = claim_;
    predecessor.owner = std::exchange(predecessor.instead_of, Owner{});
    for (const auto node : group().everybody()) {
      if (votes_[node].said == Said::granted) continue;
      group().tell(node, RedlockScripts::all().release,
                   group().words(node, predecessor, false, "all"), claim_.ttl, nullptr);
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
    if (!listened_) return listen(lock, answer, yielded);
    lock.unlock();
    tell_queued(answer, yielded);
  }

  void tell_queued(const Answer& answer, NodeSet yielded) {
    const bool now = store_.waiters_.wait(claim_.owner, ticket_, yielded);
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

  // The first one of a client to wait asks again when its turn can be told by a majority.
  void listen(Lock& lock, const Answer& answer, NodeSet yielded) {
    stage_ = Stage::listening;
    listened_ = true;
    struct Ears {
      std::mutex mutex;
      std::size_t open = 0;
      std::size_t left = 0;
      bool late = false;
      bool over = false;
    };
    const auto ears = std::make_shared<Ears>();
    ears->left = group().size();
    lock.unlock();
    const auto heard = [self = shared_from_this(), ears, answer, yielded](bool listens, bool late) {
      bool enough = false;
      {
        const std::lock_guard guard(ears->mutex);
        --ears->left;
        ears->late = ears->late || late;
        if (listens) ++ears->open;
        enough = ears->open >= self->majority();
        if (ears->over || (!enough && ears->left > 0)) return;
        ears->over = true;
      }
      if (enough && ears->late) return self->start();
      {
        const std::lock_guard guard(self->mutex_);
        self->stage_ = Stage::waits;
      }
      self->tell_queued(answer, yielded);
    };
    for (const auto node : group().everybody()) {
      const bool listens =
          group().node(node).server().listen([heard](bool open) { heard(open, true); });
      if (listens) heard(true, false);
    }
  }

  void give_up(Lock& lock, Answer answer) {
    stage_ = Stage::over;
    const bool nothing_there =
        votes_.count(Said::busy) + votes_.count(Said::lost) + votes_.count(Said::fresh) ==
        votes_.size();
    lock.unlock();
    // Also where no answer came from: it may be done there later.
    if (!nothing_there) store_.undo(claim_, attempt_);
    store_.waiters_.forget(claim_.owner);
    reply_(std::move(answer));
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
  bool listened_ = false;
  Votes votes_;
  Votes confirmed_{0};
  std::size_t unconfirmed_ = 0;
  std::vector<std::uint64_t> fences_;
  std::uint64_t ticket_ = 0;
  std::uint64_t attempt_ = 0;
};

void Redlock::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  if (auto error = refusal(claim)) return reply(Answer::failed(std::move(*error)));
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  std::make_shared<Acquiring>(*this, claim, queue, call, std::move(reply))->start();
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
    store_.group_.ask_all(RedlockScripts::all().renew, claim_, "all", call,
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
      for (const auto fence : fences) fences_.push_back(fence.value);
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
    store_.group_.ask_all(RedlockScripts::all().release, claim_, "all", call,
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

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid, "the store's URL: redlock: " + why);
}

RedlockGroup::Member member_of(std::string_view text) {
  auto url = Url::parse(text);
  if (url.scheme != "redis" && url.scheme != "rediss" && url.scheme != "redis+unix")
    refuse("each of its nodes is a redis:, rediss: or redis+unix: URL");
  if (url.query.contains("prefix")) refuse("all nodes have one prefix: &prefix= after the nodes");
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options());
  if (settings.endpoints.size() != 1) refuse("each of its nodes is one server");
  const auto& endpoint = settings.endpoints.front();
  if (url.path.size() > 1 && endpoint.socket.empty())
    settings.access.database = database_of(url.path);
  return {.name = endpoint.to_string(), .endpoint = endpoint, .access = settings.access};
}

}  // namespace

std::unique_ptr<Backend> open_redlock(Url url) {
  std::vector<RedlockGroup::Member> members;
  const auto list = url.take("nodes");
  for (std::string_view rest = list; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    members.push_back(member_of(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!members.empty()) {
    if (!url.authority.empty()) refuse("its nodes are named twice: before the ? and after it");
    url.authority = "unused";
  }
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options({"nodes"}));
  if (members.empty()) {
    if (url.path.size() > 1) settings.access.database = database_of(url.path);
    for (const auto& endpoint : settings.endpoints) {
      members.push_back(
          {.name = endpoint.to_string(), .endpoint = endpoint, .access = settings.access});
    }
  }
  if (members.size() < 2 || members.size() > kMostNodes)
    refuse("it needs several servers, three or five as a rule; one alone is redis:");
  Traits traits;
  traits.name = "redlock";
  traits.where = "redlock://";
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (members[i].endpoint == members[j].endpoint)
        refuse("it names " + members[i].name + " twice: a majority has to be of different servers");
    }
    traits.where += (i == 0 ? "" : ",") + members[i].name;
  }
  traits.slots = false;
  traits.why_no_slots = kNoSlots;
  traits.call_timeout = settings.access.call_timeout;
  traits.drift_rate = 0.01;
  if (members.size() % 2 == 0) {
    traits.warnings.push_back(std::to_string(members.size()) +
                              " nodes survive the loss of no more of them than " +
                              std::to_string(members.size() - 1) +
                              " would, and each makes one more that can fail: "
                              "take an odd number");
  }
  return std::make_unique<Redlock>(settings.prefix, members, std::move(traits));
}

}  // namespace interlock::redis
