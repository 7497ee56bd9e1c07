#include "interlock/deadlock.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/gates.hpp"
#include "core/younger.hpp"
#include "interlock/duration.hpp"

namespace interlock {

namespace {

using core::Gates;
using core::younger;

constexpr std::size_t kNobody = ~std::size_t{0};

// "job-7" for "job-7>2"; empty if it is not a part of anything.
std::string_view whole(std::string_view actor) {
  const auto end = actor.rfind('>');
  return end == std::string_view::npos ? std::string_view() : actor.substr(0, end);
}

// Holders in an order in which those stand side by side that are in the way of the same waiters.
class Holders {
 public:
  explicit Holders(const std::vector<Entry>& entries) {
    for (const auto& entry : entries) sorted_.push_back(&entry);
    std::sort(sorted_.begin(), sorted_.end(), [](const Entry* one, const Entry* other) {
      return std::make_pair(kin(*one), one->owner) < std::make_pair(kin(*other), other->owner);
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return sorted_.size(); }
  const Entry& operator[](std::size_t i) const { return *sorted_[i]; }

  /// From and to whom they are not in this waiter's way. One identity does not exclude itself. And a
  /// reader that becomes a writer waits for the others only.
  [[nodiscard]] std::pair<std::size_t, std::size_t> kin_of(const Entry& waiter) const {
    const std::string_view identity = waiter.who.identity;
    const std::string_view actor = identity.empty() ? waiter.who.actor : std::string_view();
    const auto first = std::lower_bound(
        sorted_.begin(), sorted_.end(), Kin(identity, actor, false),
        [](const Entry* holder, const Kin& least) { return kin(*holder) < least; });
    const auto last =
        std::upper_bound(first, sorted_.end(), Kin(identity, actor, !identity.empty()),
                         [](const Kin& most, const Entry* holder) { return most < kin(*holder); });
    return {first - sorted_.begin(), last - sorted_.begin()};
  }

 private:
  using Kin = std::tuple<std::string_view, std::string_view, bool>;
  static Kin kin(const Entry& entry) {
    const bool reads = entry.mode == Mode::shared && !entry.ancestor;
    const std::string_view identity = entry.who.identity;
    return {identity, identity.empty() ? entry.who.actor : std::string_view(), !reads};
  }

  std::vector<const Entry*> sorted_;
};

class Graph {
 public:
  explicit Graph(const Snapshot& snapshot) {
    for (const auto& state : snapshot.resources) {
      for (const auto& waiter : state.waiters) add_wait(waiter);
    }
    for (const auto& state : snapshot.resources) {
      for (const auto& holder : state.holders) add_work(holder);
    }
    for (const auto& state : snapshot.resources) add_row(state);
    for (const auto& wait : waits_) gates_.lead(wait.gate, wait.actor);
    for (auto& row : rows_) find_stuck(row);
  }

  std::vector<Deadlock> circles() const {
    std::vector<Deadlock> found;
    std::vector<std::size_t> seen(waits_.size(), kNobody);  // in which walk
    for (std::size_t start = 0; start < waits_.size(); ++start) {
      if (gates_.is_open(waits_[start].actor)) continue;
      std::vector<std::size_t> path;
      std::vector<Deadlock::Member> members;
      auto at = start;
      while (seen[at] == kNobody) {
        seen[at] = start;
        path.push_back(at);
        at = step(waits_[at], members);
      }
      if (seen[at] != start) continue;  // it leads into a circle that is known
      members.erase(members.begin(),
                    members.begin() + (std::find(path.begin(), path.end(), at) - path.begin()));
      found.push_back(in_order(std::move(members)));
    }
    return found;
  }

 private:
  using Id = Gates::Id;

  struct Actor {
    Id gate;       // opens when it gets on: with any of its waits, and any part of it
    Owner waiter;  // the claim by which it waits, or one of them
  };
  struct Need {
    std::size_t row;
    std::size_t place;  // in its line
    Id holders;         // opens when none of them is in the way any more
    Id ahead;           // and none of those ahead
  };
  struct Wait {
    Id actor;
    Id gate = Gates::kOpen;  // opens when all it needs is there
    std::vector<Need> needs{};
  };
  // Some of a row's holders.
  struct Crowd {
    std::vector<Id> before;          // [i] opens when the first i get on
    std::vector<Id> from;            // [i] opens when all from the i-th on do
    std::vector<std::size_t> stuck;  // [i] is the first from i on who does not
  };
  struct Row {
    const ResourceState* state;
    Holders holders;
    Crowd all{};
    Crowd writers{};
    std::size_t first = kNobody;         // in line who is stuck
    std::size_t first_writer = kNobody;  // and is no reader
  };

  // It counts for the actor, and for whatever that is a part of.
  void add_wait(const Entry& waiter) {
    if (waiter.who.actor.empty() || waits_of_.contains(waiter.owner)) return;
    Id part = Gates::kOpen;
    for (std::string_view name = waiter.who.actor; !name.empty(); name = whole(name)) {
      const auto [it, first] = actors_.try_emplace(name, Actor{Gates::kOpen, waiter.owner});
      auto& actor = it->second;
      if (first) actor.gate = gates_.any();
      actor.waiter = std::min(actor.waiter, waiter.owner);
      if (part != Gates::kOpen) gates_.lead(part, actor.gate);
      part = actor.gate;
    }
    waits_of_.emplace(waiter.owner, waits_.size());
    waits_.push_back({.actor = actors_.at(waiter.who.actor).gate});
  }

  // Who holds something and does not wait gets on, and so does whatever that is a part of.
  void add_work(const Entry& holder) {
    if (holder.who.actor.empty() || actors_.contains(holder.who.actor)) return;
    for (auto name = whole(holder.who.actor); !name.empty(); name = whole(name)) {
      if (const auto it = actors_.find(name); it != actors_.end())
        return gates_.open(it->second.gate);
    }
  }

  void add_row(const ResourceState& state) {
    if (std::none_of(state.waiters.begin(), state.waiters.end(),
                     [](const Entry& waiter) { return !waiter.who.actor.empty(); }))
      return;
    Row row{.state = &state, .holders = Holders(state.holders)};
    row.all = crowd(row.holders, [](const Entry&) { return true; });
    row.writers = crowd(row.holders, is_writer);
    const auto room = gates_.room(state.capacity);
    std::unordered_set<Owner> inside;
    std::unordered_set<std::string_view> identities;
    for (const auto& holder : state.holders) {
      inside.insert(holder.owner);
      if (holder.mode == Mode::slots) {
        gates_.takes(room, holder.slots, gate_of(holder));
      } else if (!holder.who.identity.empty()) {
        identities.insert(holder.who.identity);
      }
    }
    Id ahead = Gates::kOpen;
    Id writers_ahead = Gates::kOpen;
    for (std::size_t place = 0; place < state.waiters.size(); ++place) {
      const auto& waiter = state.waiters[place];
      const auto mine = waits_of_.find(waiter.owner);
      // Where a store is several servers, one may have let it in already.
      if (mine != waits_of_.end() && !inside.contains(waiter.owner)) {
        Need need{.row = rows_.size(),
                  .place = place,
                  .holders = Gates::kOpen,
                  .ahead = is_writer(waiter) ? ahead : writers_ahead};
        if (waiter.mode == Mode::slots) {
          need.holders = gates_.wants(room, waiter.slots);
        } else {
          const auto& others = is_writer(waiter) ? row.all : row.writers;
          const auto [first, last] = row.holders.kin_of(waiter);
          need.holders = gates_.both(others.before[first], others.from[last]);
          // Those in line may wait for this very identity: it does not wait for them.
          if (identities.contains(waiter.who.identity)) need.ahead = Gates::kOpen;
        }
        auto& wait = waits_[mine->second];
        wait.gate = gates_.both(wait.gate, gates_.both(need.holders, need.ahead));
        wait.needs.push_back(need);
      }
      ahead = gates_.both(ahead, gate_of(waiter));
      if (is_writer(waiter)) writers_ahead = gates_.both(writers_ahead, gate_of(waiter));
    }
    rows_.push_back(std::move(row));
  }

  template <class Counts>
  Crowd crowd(const Holders& holders, Counts counts) {
    const auto gate = [&](std::size_t i) {
      return counts(holders[i]) ? gate_of(holders[i]) : Gates::kOpen;
    };
    Crowd made{.before = {Gates::kOpen},
               .from = std::vector<Id>(holders.size() + 1, Gates::kOpen),
               .stuck = {}};
    for (std::size_t i = 0; i < holders.size(); ++i)
      made.before.push_back(gates_.both(made.before.back(), gate(i)));
    for (auto i = holders.size(); i-- > 0;) made.from[i] = gates_.both(made.from[i + 1], gate(i));
    return made;
  }

  void find_stuck(Row& row) const {
    const auto size = row.holders.size();
    row.all.stuck.assign(size + 1, kNobody);
    row.writers.stuck.assign(size + 1, kNobody);
    for (auto i = size; i-- > 0;) {
      const bool is = is_stuck(row.holders[i]);
      row.all.stuck[i] = is ? i : row.all.stuck[i + 1];
      row.writers.stuck[i] = is && is_writer(row.holders[i]) ? i : row.writers.stuck[i + 1];
    }
    const auto& line = row.state->waiters;
    for (auto i = line.size(); i-- > 0;) {
      if (!is_stuck(line[i])) continue;
      row.first = i;
      if (is_writer(line[i])) row.first_writer = i;
    }
  }

  // From one who is stuck to one of those who keep it so: always to the same one, however often and
  // in whatever order the store tells it.
  std::size_t step(const Wait& wait, std::vector<Deadlock::Member>& members) const {
    const auto& need = *std::find_if(wait.needs.begin(), wait.needs.end(), [&](const Need& each) {
      return !gates_.is_open(each.holders) || !gates_.is_open(each.ahead);
    });
    const auto& row = rows_[need.row];
    const auto& waiter = row.state->waiters[need.place];
    const bool queued = gates_.is_open(need.holders);
    const Entry& blocker =
        queued ? row.state->waiters[is_writer(waiter) ? row.first : row.first_writer]
               : row.holders[holder_in_the_way(row, waiter)];
    members.push_back({.who = waiter.who,
                       .waiter = waiter.owner,
                       .resource = row.state->resource,
                       .waited = waiter.age,
                       .blocker = blocker.owner,
                       .blocked_by = blocker.who,
                       .queued = queued});
    return waits_of_.at(actors_.at(blocker.who.actor).waiter);
  }

  static std::size_t holder_in_the_way(const Row& row, const Entry& waiter) {
    const auto& stuck = (is_writer(waiter) ? row.all : row.writers).stuck;
    if (waiter.mode == Mode::slots) return stuck[0];
    const auto [first, last] = row.holders.kin_of(waiter);
    return stuck[0] < first ? stuck[0] : stuck[last];
  }

  // Who waits longest comes first.
  static Deadlock in_order(std::vector<Deadlock::Member> members) {
    std::rotate(members.begin(), std::max_element(members.begin(), members.end(), younger),
                members.end());
    const auto youngest = std::min_element(members.begin(), members.end(), younger);
    const auto index = static_cast<std::size_t>(youngest - members.begin());
    return {.members = std::move(members), .youngest = index};
  }

  static bool is_writer(const Entry& entry) { return entry.mode != Mode::shared; }
  [[nodiscard]] Id gate_of(const Entry& entry) const {
    const auto it = actors_.find(entry.who.actor);
    return it == actors_.end() ? Gates::kOpen : it->second.gate;
  }
  [[nodiscard]] bool is_stuck(const Entry& entry) const { return !gates_.is_open(gate_of(entry)); }

  Gates gates_;
  std::unordered_map<std::string_view, Actor> actors_;  // those who wait
  std::unordered_map<Owner, std::size_t> waits_of_;
  std::vector<Wait> waits_;
  std::vector<Row> rows_;
};

std::string name_of(const Who& who) {
  const auto& name = !who.label.empty()      ? who.label
                     : !who.identity.empty() ? who.identity
                                             : who.actor;
  return "'" + name + "' (" + who.host + ", process " + std::to_string(who.pid) +
         (who.actor.empty() || name == who.actor ? "" : ", actor " + who.actor) + ")";
}

}  // namespace

std::string Deadlock::describe() const {
  std::string text;
  for (const auto& member : members) {
    text += (text.empty() ? "" : "; ") + name_of(member.who) + " has waited " +
            format_duration(member.waited) + " for " + member.resource +
            (member.queued ? ", behind " : ", which is held by ") +
            (members.size() == 1 ? "itself, " : "") + name_of(member.blocked_by);
  }
  return text;
}

bool Deadlock::same_as(const Deadlock& other) const noexcept {
  return std::is_permutation(members.begin(), members.end(), other.members.begin(),
                             other.members.end(), [](const Member& one, const Member& two) {
                               return one.waiter == two.waiter && one.blocker == two.blocker &&
                                      one.queued == two.queued && one.resource == two.resource;
                             });
}

std::vector<Deadlock> find_deadlocks(const Snapshot& snapshot) { return Graph(snapshot).circles(); }

}  // namespace interlock
