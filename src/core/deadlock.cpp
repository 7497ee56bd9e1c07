#include "interlock/deadlock.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/who.hpp"
#include "interlock/duration.hpp"

namespace interlock {

namespace {

// Somebody in the way of a waiter.
struct Blocker {
  const Entry* entry;
  bool queued;
};

// A waiter's place in one row, and who is in its way there.
struct Need {
  const ResourceState* state;
  const Entry* entry;
  std::vector<Blocker> blockers;
};

struct Actor {
  std::map<Owner, std::vector<Need>> waits;
  bool stuck = true;
};

bool same_identity(const Entry& one, const Entry& other) {
  return !one.who.identity.empty() && one.who.identity == other.who.identity &&
         one.mode != Mode::slots && other.mode != Mode::slots;
}

bool in_the_way(const Entry& waiter, const Entry& holder) {
  if (holder.owner == waiter.owner || same_identity(waiter, holder)) return false;
  if (waiter.mode == Mode::shared && holder.mode == Mode::shared) return false;
  // A reader that becomes a writer waits for the others only.
  return !(holder.mode == Mode::shared && !holder.who.actor.empty() &&
           holder.who.actor == waiter.who.actor);
}

class Graph {
 public:
  explicit Graph(const Snapshot& snapshot) {
    for (const auto& state : snapshot.resources) add(state);
    // Whoever is in nobody's way for good is not stuck; and who waits for such only, neither.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [name, actor] : actors_) {
        if (!actor.stuck || !gets_on(actor)) continue;
        actor.stuck = false;
        changed = true;
      }
    }
  }

  std::vector<Deadlock> circles() const {
    std::vector<Deadlock> found;
    std::map<std::string, int> seen;  // in which walk
    int walk = 0;
    for (const auto& [start, actor] : actors_) {
      if (!actor.stuck) continue;
      ++walk;
      std::vector<std::string> path;
      std::vector<Deadlock::Member> members;
      auto name = start;
      while (seen.emplace(name, walk).second) {
        path.push_back(name);
        members.push_back(step(actors_.at(name), name));
      }
      if (seen.at(name) != walk) continue;  // it leads into a circle that is known
      members.erase(members.begin(),
                    members.begin() + (std::find(path.begin(), path.end(), name) - path.begin()));
      const auto youngest =
          std::min_element(members.begin(), members.end(), [](const auto& one, const auto& other) {
            return std::tie(one.waited, one.waiter) < std::tie(other.waited, other.waiter);
          });
      const auto index = static_cast<std::size_t>(youngest - members.begin());
      found.push_back({.members = std::move(members), .youngest = index});
    }
    return found;
  }

 private:
  void add(const ResourceState& state) {
    for (auto waiter = state.waiters.begin(); waiter != state.waiters.end(); ++waiter) {
      const auto name = actor_of(waiter->who);
      if (name.empty()) continue;
      Need need{.state = &state, .entry = &*waiter, .blockers = {}};
      for (const auto& holder : state.holders) {
        if (in_the_way(*waiter, holder)) need.blockers.push_back({&holder, false});
      }
      // Those in line may wait for this very identity: it does not wait for them.
      const bool inside =
          std::any_of(state.holders.begin(), state.holders.end(),
                      [&](const Entry& holder) { return same_identity(*waiter, holder); });
      for (auto ahead = state.waiters.begin(); ahead != waiter && !inside; ++ahead) {
        if (in_the_way(*waiter, *ahead)) need.blockers.push_back({&*ahead, true});
      }
      actors_[name].waits[waiter->owner].push_back(std::move(need));
    }
  }

  [[nodiscard]] bool stuck(const Entry& entry) const {
    const auto it = actors_.find(actor_of(entry.who));
    return it != actors_.end() && it->second.stuck;
  }

  // All that stands in the way here goes some day.
  [[nodiscard]] bool met(const Need& need) const {
    std::uint64_t taken = 0;
    for (const auto& blocker : need.blockers) {
      if (!stuck(*blocker.entry)) continue;
      if (blocker.queued || need.entry->mode != Mode::slots) return false;
      taken += blocker.entry->slots;
    }
    return need.entry->mode != Mode::slots || taken + need.entry->slots <= need.state->capacity;
  }

  [[nodiscard]] bool gets_on(const Actor& actor) const {
    return std::any_of(actor.waits.begin(), actor.waits.end(), [&](const auto& wait) {
      return std::all_of(wait.second.begin(), wait.second.end(),
                         [&](const Need& need) { return met(need); });
    });
  }

  // From a stuck actor to one of those who keep it so.
  Deadlock::Member step(const Actor& actor, std::string& name) const {
    for (const auto& [owner, needs] : actor.waits) {
      for (const auto& need : needs) {
        if (met(need)) continue;
        for (const auto& blocker : need.blockers) {
          if (!stuck(*blocker.entry)) continue;
          name = actor_of(blocker.entry->who);
          return {.who = need.entry->who,
                  .waiter = owner,
                  .resource = need.state->resource,
                  .waited = need.entry->age,
                  .blocker = blocker.entry->owner,
                  .queued = blocker.queued};
        }
      }
    }
    return {};  // not reached: a stuck actor has a need that is not met, and so a stuck blocker
  }

  std::map<std::string, Actor> actors_;
};

std::string name_of(const Who& who) {
  const auto& name = !who.label.empty()      ? who.label
                     : !who.identity.empty() ? who.identity
                                             : who.actor;
  return "'" + name + "' (" + who.host + ", process " + std::to_string(who.pid) + ")";
}

}  // namespace

std::string Deadlock::describe() const {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& member = members[i];
    const auto& next = members[(i + 1) % members.size()];
    text += (i == 0 ? "" : "; ") + name_of(member.who) + " has waited " +
            format_duration(member.waited) + " for " + member.resource +
            (member.queued ? ", behind " : ", which is held by ") +
            (members.size() == 1 ? "itself" : name_of(next.who));
  }
  return text;
}

bool Deadlock::same_as(const Deadlock& other) const noexcept {
  if (members.size() != other.members.size()) return false;
  return std::all_of(members.begin(), members.end(), [&](const Member& member) {
    return std::any_of(other.members.begin(), other.members.end(), [&](const Member& was) {
      return was.waiter == member.waiter && was.blocker == member.blocker &&
             was.queued == member.queued && was.resource == member.resource;
    });
  });
}

std::vector<Deadlock> find_deadlocks(const Snapshot& snapshot) { return Graph(snapshot).circles(); }

}  // namespace interlock
