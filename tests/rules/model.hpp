// The lock table as a store would have it: with a time that the walk moves, with places in line that end sooner for
// those who were told, and with what it knows of each waiter: whether it may sleep.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/lock_table.hpp"
#include "rules/liberties.hpp"

namespace interlock::rules_walk {

using Owners = std::set<Owner>;

class Model {
 public:
  explicit Model(Liberties may) : may_(std::move(may)), table_(rules()) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Answer acquire(const Claim& claim, bool queue) {
    begin(claim);
    std::vector<Wake> wakes;
    const auto answer = table_.acquire(claim, queue, {}, now_, wakes);
    end(wakes);
    // One that does not wait any longer has not begun to sleep.
    if (queue || answer.verdict != Verdict::busy) asked(claim, answer.verdict == Verdict::queued);
    return answer;
  }
  Answer renew(const Claim& claim) {
    begin(claim);
    std::vector<Wake> wakes;
    const auto answer = table_.renew(claim, {}, now_, wakes);
    end(wakes);
    return answer;
  }
  Answer release(const Claim& claim) {
    begin(claim);
    std::vector<Wake> wakes;
    const auto answer = table_.release(claim, 0, now_, wakes);
    end(wakes);
    asked(claim, false);
    return answer;
  }
  [[nodiscard]] std::vector<ResourceState> inspect() const { return table_.inspect({}, now_); }

  /// What ends meanwhile, ends. Those whom that lets in are not told by all stores, as nobody is there to do it:
  /// they know when to look.
  void pass(Duration time) {
    now_ += time;
    std::map<std::string, std::size_t> before;
    for (const auto& [name, row] : table_.rows()) {
      before[name] = row.holders.size() + row.queue.size();
      for (const auto& holder : row.holders) ended(name, holder);
      for (const auto& [ticket, waiter] : row.queue) ended(name, waiter);
    }
    std::vector<Wake> wakes;
    table_.sweep(now_, wakes);
    for (const auto& wake : wakes) {
      may_be_told_.insert(wake.owner);
      next_.insert(wake.owner);
    }
    for (const auto& [name, many] : before) {
      const auto row = table_.rows().find(name);
      if (row == table_.rows().end() ||
          row->second.holders.size() + row->second.queue.size() < many)
        swept_.insert(name);
    }
    const auto forgotten = [&](const auto& sleeper) { return !waits(sleeper.first); };
    forgotten_ += std::erase_if(sleepers_, forgotten);
  }

  /// Whom the last step has to wake, unless they were told before and have not asked since; and whom it may.
  [[nodiscard]] const Owners& must_wake() const noexcept { return must_; }
  [[nodiscard]] Owners may_wake() const {
    auto may = must_;
    may.insert(again_.begin(), again_.end());
    may.insert(may_be_told_.begin(), may_be_told_.end());
    if (asker_may_) may.insert(asks_.owner);
    return may;
  }
  /// The store has woken them.
  void told(const Owners& owners) {
    const auto touched = touched_rows();
    for (const auto& owner : owners) {
      if (owner == asks_.owner) continue;
      told_.insert(owner);
      may_be_told_.erase(owner);
      if (may_.told_lasts) shorten(owner, touched);
    }
  }
  /// The store has told it to look again after this time.
  void will_look(const Owner& owner, std::optional<Duration> after) {
    const auto it = sleepers_.find(owner);
    if (it != sleepers_.end() && after) it->second.looks_at = now_ + *after;
  }

  /// When a claim that waits looks again: when the first ends that is in its way.
  [[nodiscard]] Duration look(const Claim& claim) {
    auto first = Duration::max();
    for (const auto& part : claim.parts) {
      auto one = claim;
      one.parts = {part};
      auto answer = ask_row(one, !may_.looks_past_waiters);
      if (answer.verdict != Verdict::queued) answer = ask_row(one, true);
      if (answer.verdict == Verdict::queued && answer.look_again)
        first = std::min(first, *answer.look_again);
    }
    return first;
  }

  /// When the first of all holders ends, in the way or not.
  [[nodiscard]] Duration first_end(const Claim& claim) const {
    auto first = Duration::max();
    for (const auto& part : claim.parts) {
      const auto row = table_.rows().find(part.resource);
      if (row == table_.rows().end()) continue;
      for (const auto& holder : row->second.holders) first = std::min(first, holder.expires - now_);
    }
    return first;
  }

  /// When the last of all holders ends; 0: there are none.
  [[nodiscard]] Duration last_end(const Claim& claim) const {
    auto last = Duration::zero();
    for (const auto& part : claim.parts) {
      const auto row = table_.rows().find(part.resource);
      if (row == table_.rows().end()) continue;
      for (const auto& holder : row->second.holders) last = std::max(last, holder.expires - now_);
    }
    return last;
  }

  /// Those who could have what they wait for, whom nobody told, and who don't look by now either.
  [[nodiscard]] std::vector<Claim> sleep_through_it() const {
    std::vector<Claim> found;
    for (const auto& [owner, sleeper] : sleepers_) {
      if (told_.contains(owner) || sleeper.surprised || sleeper.looks_at <= now_ || !waits(owner))
        continue;
      if (may_.identities_look && !sleeper.claim.who->identity.empty()) continue;
      if (could_have(sleeper.claim)) found.push_back(sleeper.claim);
    }
    return found;
  }
  /// Those whose turn it is, by the table alone, and who have not asked since.
  [[nodiscard]] std::vector<Claim> next() const { return claims_of(next_); }
  [[nodiscard]] std::vector<Claim> waiting() const {
    Owners all;
    for (const auto& [owner, sleeper] : sleepers_) all.insert(owner);
    return claims_of(all);
  }
  /// Its place was forgotten, and a store that has not noticed yet may count it.
  [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }
  [[nodiscard]] bool waits(const Owner& owner) const {
    return std::any_of(table_.rows().begin(), table_.rows().end(), [&](const auto& row) {
      return std::any_of(row.second.queue.begin(), row.second.queue.end(),
                         [&](const auto& waiter) { return waiter.second.owner == owner; });
    });
  }

 private:
  struct Sleeper {
    Claim claim;
    TimePoint asked;
    TimePoint looks_at = TimePoint::max();
    std::size_t order = 0;
    bool surprised = false;  ///< it could not know when this would end
  };

  LockTable::Rules rules() {
    return {.next_fence = [this](const std::string&) { return ++fence_; },
            .gone = {},
            .ticket_ttl = may_.place_lasts};
  }

  [[nodiscard]] bool could_have(const Claim& claim) const {
    auto copy = table_;
    std::vector<Wake> wakes;
    return copy.acquire(claim, true, {}, now_, wakes).verdict == Verdict::granted;
  }
  // The table looks at one row at a time, and wakes those who fit there, though they still have to wait elsewhere.
  [[nodiscard]] bool may_be_spared(const Owner& owner) const {
    if (!may_.wakes_more && !may_.spares_those_who_wait_elsewhere) return false;
    const auto it = sleepers_.find(owner);
    if (it == sleepers_.end()) return may_.wakes_more;
    const auto& claim = it->second.claim;
    if (!may_.wakes_more) return claim.parts.size() > 1 && !could_have(claim);
    return (may_.identities_look && !claim.who->identity.empty()) || !could_have(claim);
  }
  void begin(const Claim& claim) {
    asks_ = claim;
    asker_may_ = may_.tells_the_asker || may_be_told_.contains(claim.owner);
    before_ = table_.rows();
  }
  void end(const std::vector<Wake>& wakes) {
    must_.clear();
    again_.clear();
    for (const auto& wake : wakes) {
      next_.insert(wake.owner);
      (told_.contains(wake.owner) || may_be_spared(wake.owner) ? again_ : must_).insert(wake.owner);
    }
  }
  void asked(const Claim& claim, bool queued) {
    told_.erase(claim.owner);
    may_be_told_.erase(claim.owner);
    next_.erase(claim.owner);
    sleepers_.erase(claim.owner);
    if (queued)
      sleepers_.emplace(claim.owner, Sleeper{.claim = claim, .asked = now_, .order = ++order_});
  }
  // What came after a sleeper had asked, or was told to be quick, ends at a time that the sleeper did not know: its next
  // heartbeat finds that.
  void ended(const std::string& name, const Record& record) {
    if (record.expires > now_) return;
    for (auto& [owner, sleeper] : sleepers_) {
      if (sleeper.claim.find(name) != nullptr)
        sleeper.surprised |= record.since >= sleeper.asked || told_.contains(record.owner);
    }
  }
  [[nodiscard]] std::vector<Claim> claims_of(const Owners& owners) const {
    std::vector<const Sleeper*> found;
    for (const auto& owner : owners) {
      const auto it = sleepers_.find(owner);
      if (it != sleepers_.end() && waits(owner)) found.push_back(&it->second);
    }
    // Owners are random, and the seed alone decides.
    std::sort(found.begin(), found.end(),
              [](const auto* a, const auto* b) { return a->order < b->order; });
    std::vector<Claim> claims;
    for (const auto* one : found) claims.push_back(one->claim);
    return claims;
  }

  // The rows in which the last step may have woken somebody: something left them, or its claim came.
  std::set<std::string> touched_rows() {
    std::set<std::string> touched;
    for (const auto& part : asks_.parts) {
      const auto before = before_.find(part.resource);
      const auto after = table_.rows().find(part.resource);
      if (swept_.erase(part.resource) > 0) touched.insert(part.resource);
      if (after == table_.rows().end()) continue;
      if (holds_in(after->second, asks_.owner) &&
          (before == before_.end() || !holds_in(before->second, asks_.owner)))
        touched.insert(part.resource);
      if (before == before_.end()) continue;
      const auto gone = [&](const Record& r) { return !holds_in(after->second, r.owner); };
      const bool left =
          std::any_of(before->second.holders.begin(), before->second.holders.end(), gone);
      const bool gave_up = std::any_of(
          before->second.queue.begin(), before->second.queue.end(), [&](const auto& waiter) {
            return !waits_in(after->second, waiter.second.owner) && gone(waiter.second);
          });
      if (left || gave_up) touched.insert(part.resource);
    }
    return touched;
  }
  static bool holds_in(const Row& row, const Owner& owner) {
    return std::any_of(row.holders.begin(), row.holders.end(),
                       [&](const Record& holder) { return holder.owner == owner; });
  }
  static bool waits_in(const Row& row, const Owner& owner) {
    return std::any_of(row.queue.begin(), row.queue.end(),
                       [&](const auto& waiter) { return waiter.second.owner == owner; });
  }

  // A table of this row alone.
  Answer ask_row(const Claim& claim, bool with_waiters) {
    LockTable alone(rules());
    const auto& name = claim.parts.front().resource;
    if (const auto row = table_.rows().find(name); row != table_.rows().end()) {
      for (const auto& holder : row->second.holders) alone.restore_holder(name, holder);
      for (const auto& [ticket, waiter] : row->second.queue) {
        if (with_waiters || waiter.owner == claim.owner) alone.restore_waiter(name, ticket, waiter);
      }
    }
    std::vector<Wake> wakes;
    return alone.acquire(claim, true, {}, now_, wakes);
  }
  // In a table of this row alone: a waiter that has just fallen silent makes it wake those who are next.
  [[nodiscard]] bool is_next_in(const std::string& name, const Owner& owner) {
    const auto row = table_.rows().find(name);
    if (row == table_.rows().end() || !waits_in(row->second, owner)) return false;
    LockTable alone(rules());
    for (const auto& holder : row->second.holders) alone.restore_holder(name, holder);
    for (const auto& [ticket, waiter] : row->second.queue)
      alone.restore_waiter(name, ticket, waiter);
    Record silent{.owner = Owner::random(), .expires = now_, .who = std::make_shared<const Who>()};
    alone.restore_waiter(name, Ticket{false, 0, table_.last_ticket() + 1}, silent);
    std::vector<Wake> wakes;
    alone.sweep(now_, wakes);
    return std::any_of(wakes.begin(), wakes.end(), [&](const Wake& w) { return w.owner == owner; });
  }

  void shorten(const Owner& owner, const std::set<std::string>& touched) {
    LockTable shorter(rules());
    for (const auto& [name, row] : table_.rows()) {
      const bool here = touched.contains(name) && is_next_in(name, owner);
      for (const auto& holder : row.holders) shorter.restore_holder(name, holder);
      for (const auto& [ticket, waiter] : row.queue) {
        auto record = waiter;
        if (here && waiter.owner == owner &&
            (waiter.mode == Mode::exclusive || !may_.told_readers_last))
          record.expires = std::min(record.expires, now_ + *may_.told_lasts);
        shorter.restore_waiter(name, ticket, std::move(record));
      }
    }
    shorter.set_last_ticket(table_.last_ticket());
    table_ = std::move(shorter);
  }

  const Liberties may_;
  TimePoint now_{};
  std::uint64_t fence_ = 0;
  LockTable table_;
  std::unordered_map<std::string, Row> before_;
  Claim asks_;
  bool asker_may_ = false;  ///< something ended, and it is its turn just now
  Owners must_, again_;
  Owners told_;         ///< by the store, since they asked
  Owners may_be_told_;  ///< something ended, and it is their turn
  Owners next_;         ///< woken by the table, since they asked
  std::set<std::string> swept_;
  std::map<Owner, Sleeper> sleepers_;
  std::size_t order_ = 0;
  std::size_t forgotten_ = 0;
};

}  // namespace interlock::rules_walk
