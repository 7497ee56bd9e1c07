#include "backends/redis/store.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/redis/inspection.hpp"

namespace interlock::redis {

/// The fences of a claim, gathered from its pieces.
class Store::Fences {
 public:
  void add(const Piece& piece, const Answer& answer) {
    const auto& parts = piece.claim.parts;
    for (std::size_t i = 0; i < parts.size() && i < answer.fences.size(); ++i)
      found_[parts[i].resource] = answer.fences[i];
  }
  /// In the order of the claim's parts; none if there were none.
  [[nodiscard]] std::vector<Fence> of(const Claim& claim) {
    std::vector<Fence> fences;
    if (found_.empty()) return fences;
    for (const auto& part : claim.parts) fences.push_back(found_[part.resource]);
    return fences;
  }

 private:
  std::map<std::string, Fence> found_;
};

/// Takes the pieces of a claim in the order of their slots, as everybody does, so that no two wait
/// for each other. What was taken stays taken while a later piece waits: every heartbeat asks for
/// all of it again, which keeps it. If a piece can't be had, the others are given back in reverse;
/// but not those that took over from a hold, which has ended with that.
class Store::Sequence : public std::enable_shared_from_this<Sequence> {
 public:
  Sequence(Store& store, const Claim& claim, std::vector<PiecePtr> pieces, Reply reply)
      : store_(store),
        claim_(claim),
        pieces_(std::move(pieces)),
        reply_(std::move(reply)),
        call_(store.begin(claim.owner)) {}

  void next() {
    store_.acquire_piece(pieces_[at_], [self = shared_from_this()](Answer answer) {
      self->answered(std::move(answer));
    });
  }

 private:
  void answered(Answer answer) {
    if (answer.verdict == Verdict::granted) {
      fences_.add(*pieces_[at_], answer);
      if (++at_ < pieces_.size()) return next();
      answer.fences = fences_.of(claim_);
    } else if (answer.verdict == Verdict::busy && claim_.instead_of.empty()) {
      return give_back(answer);
    } else {
      answer.partly = answer.verdict == Verdict::busy && at_ > 0;
    }
    answer.unsent = answer.unsent && at_ == 0;
    finish(std::move(answer));
  }

  void give_back(const Answer& answer) {
    const bool goes_on =
        at_ > 0 &&
        store_.release_if_latest(pieces_[at_ - 1], call_,
                                 [self = shared_from_this(), answer](const Answer& released) {
                                   // In doubt whether it went: then so is everything, and the core cleans up.
                                   if (released.verdict == Verdict::unknown)
                                     return self->finish(released);
                                   --self->at_;
                                   self->give_back(answer);
                                 });
    if (!goes_on) finish(answer);
  }

  void finish(Answer answer) {
    store_.end(claim_.owner, call_);
    reply_(std::move(answer));
  }

  Store& store_;
  const Claim claim_;
  const std::vector<PiecePtr> pieces_;
  const Reply reply_;
  const std::uint64_t call_;
  std::size_t at_ = 0;
  Fences fences_;
};

/// The same call for all pieces at once.
class Store::Round {
 public:
  /// Of two answers the one that counts: the first in `order`.
  Round(std::size_t pieces, std::vector<Verdict> order, Claim claim, Reply reply)
      : left_(pieces),
        order_(std::move(order)),
        claim_(std::move(claim)),
        reply_(std::move(reply)) {}

  void answered(const Piece& piece, Answer answer) {
    {
      const std::lock_guard lock(mutex_);
      fences_.add(piece, answer);
      if (!answer_ || rank(answer.verdict) < rank(answer_->verdict)) answer_ = std::move(answer);
      if (--left_ > 0) return;
    }
    answer_->fences.clear();
    if (answer_->verdict == Verdict::granted) answer_->fences = fences_.of(claim_);
    reply_(std::move(*answer_));
  }

 private:
  [[nodiscard]] std::ptrdiff_t rank(Verdict verdict) const {
    return std::find(order_.begin(), order_.end(), verdict) - order_.begin();
  }

  std::mutex mutex_;
  std::size_t left_;
  const std::vector<Verdict> order_;
  const Claim claim_;
  const Reply reply_;
  std::optional<Answer> answer_;
  Fences fences_;
};

Store::Store(std::unique_ptr<Common> common, std::unique_ptr<Realm> realm, Traits traits)
    : traits_(std::move(traits)), common_(std::move(common)), realm_(std::move(realm)) {}

// No callback may run once the realm goes.
Store::~Store() { common_->loop.stop(); }

std::vector<Store::PiecePtr> Store::cut(const Claim& whole, bool queue, Call call) const {
  Claim claim = whole;
  if (!claim.who) claim.who = std::make_shared<const Who>();
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  if (common_->names.prefix().empty()) {
    for (const auto& part : claim.parts) (void)common_->names.of(part.resource);
  }
  if (!realm_->spread()) {
    return {std::make_shared<const Piece>(
        Piece{.claim = std::move(claim), .slot = 0, .queue = queue, .call = call})};
  }
  std::map<std::uint16_t, Claim> by_slot;
  for (const auto& part : claim.parts) {
    const auto slot = slot_of(common_->names.of(part.resource).lock);
    auto [it, fresh] = by_slot.try_emplace(slot, claim);
    if (fresh) it->second.parts.clear();
    it->second.parts.push_back(part);
  }
  std::vector<PiecePtr> pieces;
  pieces.reserve(by_slot.size());
  for (auto& [slot, part] : by_slot) {
    pieces.push_back(std::make_shared<const Piece>(
        Piece{.claim = std::move(part), .slot = slot, .queue = queue, .call = call}));
  }
  // A hold that gets stronger may have to wait; the others go over at once, and must not before.
  if (!claim.instead_of.empty()) {
    std::stable_partition(pieces.begin(), pieces.end(), [](const PiecePtr& piece) {
      return std::any_of(piece->claim.parts.begin(), piece->claim.parts.end(),
                         [](const Part& part) { return part.mode == Mode::exclusive; });
    });
  }
  return pieces;
}

void Store::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  try {
    auto pieces = cut(claim, queue, call);
    if (pieces.size() == 1) return acquire_piece(pieces.front(), std::move(reply));
    std::make_shared<Sequence>(*this, claim, std::move(pieces), std::move(reply))->next();
  } catch (const Error& error) {
    reply(Answer::failed(error));
  }
}

void Store::acquire_piece(const PiecePtr& piece, Reply reply) {
  const bool confirms = needs_replicas(piece->claim);
  const auto call = confirms ? begin(piece->claim.owner) : 0;
  run(Scripts::all().acquire, piece,
      [this, piece, confirms, call, reply = std::move(reply)](Answer answer) {
        if (confirms && answer.verdict == Verdict::granted)
          return confirm(piece, call, answer, reply);
        if (confirms) end(piece->claim.owner, call);
        // The first ones of a client to wait: what was published until we listen reached nobody.
        if (answer.verdict == Verdict::queued)
          realm_->listen(piece->slot, [this, piece] { common_->sink(piece->claim.owner); });
        reply(std::move(answer));
      });
}

// What takes over and shares excludes nobody that the hold before it did not: the replicas know that
// one.
bool Store::needs_replicas(const Claim& claim) const {
  const bool excludes = claim.instead_of.empty() ||
                        std::any_of(claim.parts.begin(), claim.parts.end(),
                                    [](const Part& part) { return part.mode == Mode::exclusive; });
  return excludes && realm_->min_replicas() > 0;
}

std::uint64_t Store::begin(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  return latest_[owner] = ++calls_;
}

void Store::end(const Owner& owner, std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  const auto it = latest_.find(owner);
  if (it != latest_.end() && it->second == call) latest_.erase(it);
}

bool Store::release_if_latest(const PiecePtr& piece, std::uint64_t call, Reply reply) {
  // Under the lock, so that no newer call is sent ahead of it. What comes of it is told without.
  const std::lock_guard lock(mutex_);
  const auto it = latest_.find(piece->claim.owner);
  if (it == latest_.end() || it->second != call) return false;
  run(Scripts::all().release, piece, [this, reply = std::move(reply)](const Answer& answer) {
    common_->loop.io::Loop::post(
        [reply, answer](TimePoint, Finished& finished) {
          finished.list.emplace_back([reply, answer] { reply(answer); });
        },
        false);
  });
  return true;
}

void Store::confirm(const PiecePtr& piece, std::uint64_t call, const Answer& answer,
                    const Reply& reply) {
  const auto patience = std::clamp<Duration>(piece->claim.ttl / 10, std::chrono::milliseconds(10),
                                             std::chrono::seconds(1));
  const auto renewal = [this, &piece](const ClaimStyle& style) {
    auto longer = piece->claim;
    longer.ttl += std::chrono::milliseconds(1);
    return words_of(longer, false, common_->names, style);
  };
  realm_->confirm(
      piece->claim, renewal, patience, piece->call,
      [this, piece, call, answer, reply](std::int64_t got, const std::optional<Error>& failed) {
        const auto wanted = realm_->min_replicas();
        const auto& claim = piece->claim;
        if (!failed && got >= wanted) {
          end(claim.owner, call);
          return reply(answer);
        }
        const auto why = failed.value_or(Error(
            Errc::unreachable,
            "the server answers, but " + std::to_string(got) + " of " + std::to_string(wanted) +
                " replicas confirmed the lock in time, so it was given back; "
                "see that the replicas run and keep up, or lower "
                "min-replicas in the store's URL",
            {.resource = {}, .node = traits_.where, .maybe_held = true}));
        const auto undone = [this, piece, call, reply, why](const Answer& released) {
          end(piece->claim.owner, call);
          auto failure = Answer::failed({why.errc(),
                                         why.message(),
                                         {.resource = {},
                                          .node = traits_.where,
                                          .maybe_held = released.verdict == Verdict::unknown}});
          failure.undone = true;
          reply(std::move(failure));
        };
        // What took over from a hold stays in doubt.
        if (!claim.instead_of.empty() || !release_if_latest(piece, call, undone)) {
          end(claim.owner, call);
          reply(Answer::failed(why));
        }
      });
}

void Store::renew(const Claim& claim, Call call, Reply reply) {
  run_all(Scripts::all().renew, {Verdict::lost, Verdict::unknown, Verdict::granted}, claim, call,
          std::move(reply));
}

void Store::release(const Claim& claim, Call call, Reply reply) {
  run_all(Scripts::all().release,
          {Verdict::unknown, Verdict::queued, Verdict::lost, Verdict::granted}, claim, call,
          std::move(reply));
}

void Store::run_all(const Script& script, std::vector<Verdict> order, const Claim& claim, Call call,
                    Reply reply) {
  try {
    const auto pieces = cut(claim, false, call);
    if (pieces.size() == 1) return run(script, pieces.front(), std::move(reply));
    const auto round =
        std::make_shared<Round>(pieces.size(), std::move(order), claim, std::move(reply));
    for (const auto& piece : pieces) {
      run(script, piece,
          [round, piece](Answer answer) { round->answered(*piece, std::move(answer)); });
    }
  } catch (const Error& error) {
    reply(Answer::failed(error));
  }
}

void Store::run(const Script& script, const PiecePtr& piece, Reply reply) {
  const bool releases = &script == &Scripts::all().release;
  realm_->run(
      piece->slot, script,
      [this, piece, releases](const ClaimStyle& style) {
        return releases ? release_words(piece->claim, common_->names, style)
                        : words_of(piece->claim, piece->queue, common_->names, style);
      },
      piece->call,
      [this, piece, releases, &script, reply = std::move(reply)](const Outcome& outcome) {
        if (!outcome.reply) {
          auto answer = Answer::failed(*outcome.failure);
          answer.unsent = !outcome.failure->maybe_held();
          return reply(std::move(answer));
        }
        if (is_error(*outcome.reply))
          return reply(
              Answer::failed(to_error(text_of(*outcome.reply), traits_.where, script.text)));
        reply(releases ? release_answer(*outcome.reply)
                       : acquire_answer(*outcome.reply, piece->claim, traits_.where));
      });
}

void Store::inspect(const Query& query, Call call, Report report) {
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  std::make_shared<Inspection>(*realm_, common_->names, query, call, std::move(report))->start();
}

}  // namespace interlock::redis
