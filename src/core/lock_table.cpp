#include "core/lock_table.hpp"

#include <algorithm>
#include <limits>

namespace interlock {

namespace {

constexpr std::size_t kCallsBetweenSweeps = 1024;

bool same_identity(const Who& a, const Who& b) {
  return !a.identity.empty() && a.identity == b.identity;
}

bool is_slots(Mode mode) { return mode == Mode::slots; }

// Two claims of different identities on one resource, one of them not holding yet.
bool conflicts(Mode a, Mode b) { return a != Mode::shared || b != Mode::shared; }

template <class AnyRow>
auto find_holder(AnyRow& row, const Owner& owner) {
  const auto it = std::find_if(row.holders.begin(), row.holders.end(),
                               [&](const Record& r) { return r.owner == owner; });
  return it == row.holders.end() ? nullptr : &*it;
}

// The claim's own record, or the one that it takes over: never in its way.
bool is_own(const Record& record, const Claim& claim) {
  return record.owner == claim.owner || record.owner == claim.instead_of;
}

// Of a claim that takes over: no stronger than what it has here already, so nobody is in its way.
bool goes_on(const Row& row, const Part& part, const Claim& claim) {
  if (claim.instead_of.empty()) return false;
  const auto* before = find_holder(row, claim.instead_of);
  return before != nullptr && !(before->mode == Mode::shared && part.mode == Mode::exclusive);
}

// Of the holds of the same identity that are at least as strong as `mode`, the one with the largest fence: with a smaller
// one, a write would be refused after those of that hold.
const Record* own_hold(const Row& row, const Who& who, Mode mode) {
  const Record* newest = nullptr;
  for (const auto& r : row.holders) {
    const bool lends = !is_slots(r.mode) && same_identity(*r.who, who) &&
                       (r.mode == Mode::exclusive || mode == Mode::shared);
    if (lends && (newest == nullptr || r.fence > newest->fence)) newest = &r;
  }
  return newest;
}

// Does this fit the holders, of whom those that `ignore` names don't count?
template <class Ignore>
bool fits(const Row& row, Mode mode, std::uint64_t slots, std::uint32_t capacity, const Who& who,
          Ignore ignore) {
  if (is_slots(mode)) {
    for (const auto& h : row.holders) {
      if (!ignore(h)) slots += h.slots;
    }
    return slots <= capacity;
  }
  return std::none_of(row.holders.begin(), row.holders.end(), [&](const Record& h) {
    return !ignore(h) && !same_identity(*h.who, who) && conflicts(h.mode, mode);
  });
}

Record make_record(const Claim& claim, const Part& part, const Origin& origin, TimePoint now,
                   Duration ttl) {
  return {.owner = claim.owner,
          .mode = part.mode,
          .slots = part.slots,
          .capacity = part.capacity,
          .ancestor = part.ancestor,
          .priority = claim.priority,
          .since = now,
          .expires = now + ttl,
          .fence = 0,
          .who = claim.who,
          .origin = origin};
}

std::string describe_use(const Record& record) {
  if (is_slots(record.mode)) return "a semaphore of capacity " + std::to_string(record.capacity);
  return std::string("a lock (") + std::string(to_string(record.mode)) + ")";
}

// The one that asks has its answer.
void spare(const Owner& asker, std::vector<Wake>& wakes) {
  std::erase_if(wakes, [&](const Wake& wake) { return wake.owner == asker; });
}

Entry make_entry(const Record& r, TimePoint now) {
  return {.owner = r.owner,
          .who = *r.who,
          .mode = r.mode,
          .slots = r.slots,
          .ancestor = r.ancestor,
          .priority = r.priority,
          .fence = Fence{r.fence},
          .age = now - r.since,
          .remaining = std::max(Duration::zero(), r.expires - now)};
}

}  // namespace

Answer LockTable::acquire(const Claim& claim, bool queue, const Origin& origin, TimePoint now,
                          std::vector<Wake>& wakes) {
  if (++calls_since_sweep_ > std::max(kCallsBetweenSweeps, rows_.size())) sweep(now, wakes);
  sweep_rows(claim, now, wakes);
  const auto held = held_by(claim.owner, claim);
  if (held == claim.parts.size()) return rearm(claim, origin, now);
  // It was granted all of it, and some has been taken away or given back since. A claim never grows.
  if (held > 0) return {.verdict = Verdict::lost};
  const bool takes_over = !claim.instead_of.empty();
  if (takes_over && held_by(claim.instead_of, claim) < claim.parts.size()) {
    give_up(claim, wakes);
    return {.verdict = Verdict::lost};
  }
  // The dead are looked for only when something is in the way: that takes time.
  const auto in_way_of = [&](const Ticket& at) {
    Hindrance all;
    for (const auto& part : claim.parts) {
      const auto it = rows_.find(part.resource);
      if (it == rows_.end() || goes_on(it->second, part, claim)) continue;
      const auto here = hindrance(part, claim, at, it->second);
      all.any = all.any || here.any;
      all.ends = std::min(all.ends, here.ends);
    }
    return all;
  };
  if (misfit(claim) || (takes_over && has_rival(claim))) drop_gone(claim, wakes);
  if (auto error = misfit(claim)) return Answer::failed(std::move(*error));
  if (takes_over && has_rival(claim)) return {.verdict = Verdict::busy};

  const auto queued = tickets_.find(claim.owner);
  // A one-shot stands behind everybody, whatever its priority: it never overtakes. A holder that
  // wants more stands before everybody: they wait for it anyway.
  const Ticket ticket = queued != tickets_.end() ? queued->second.ticket
                        : takes_over             ? Ticket{true, claim.priority, last_ticket_ + 1}
                        : queue                  ? Ticket{false, claim.priority, last_ticket_ + 1}
                                : Ticket{false, std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::uint64_t>::max()};
  Hindrance in_way = in_way_of(ticket);
  if (in_way.any && drop_gone(claim, wakes)) in_way = in_way_of(ticket);
  if (!in_way.any) {
    const bool waited = queued != tickets_.end();
    leave_queue(claim);
    auto answer = grant(claim, origin, now, wakes);
    wake_behind(claim, waited, wakes);
    return answer;
  }
  if (!queue) return {.verdict = Verdict::busy};
  return enqueue(claim, ticket, origin, now, in_way.ends);
}

std::size_t LockTable::held_by(const Owner& owner, const Claim& claim) const {
  return static_cast<std::size_t>(
      std::count_if(claim.parts.begin(), claim.parts.end(), [&](const Part& part) {
        const auto it = rows_.find(part.resource);
        return it != rows_.end() && find_holder(it->second, owner) != nullptr;
      }));
}

bool LockTable::drop_gone(const Claim& claim, std::vector<Wake>& wakes) {
  if (!rules_.gone) return false;
  bool any = false;
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it == rows_.end()) continue;
    Row& row = it->second;
    const auto gone = [&](const Record& r) { return !is_own(r, claim) && rules_.gone(r); };
    auto dropped = std::erase_if(row.holders, gone);
    dropped += std::erase_if(row.queue, [&](const auto& waiter) {
      if (!gone(waiter.second)) return false;
      leave_row(waiter.second.owner);
      return true;
    });
    if (dropped > 0) wake_next(row, wakes);  // it may be somebody else's turn
    any = any || dropped > 0;
  }
  spare(claim.owner, wakes);
  return any;
}

bool LockTable::has_rival(const Claim& claim) const {
  return std::any_of(claim.parts.begin(), claim.parts.end(), [&](const Part& part) {
    const auto it = rows_.find(part.resource);
    if (it == rows_.end() || part.mode != Mode::exclusive) return false;
    const auto first = it->second.queue.begin();
    return first != it->second.queue.end() && first->first.stronger &&
           !is_own(first->second, claim);
  });
}

std::optional<Error> LockTable::misfit(const Claim& claim) const {
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it == rows_.end()) continue;
    const auto check = [&](const Record& r) -> std::optional<Error> {
      if (is_slots(r.mode) != is_slots(part.mode)) {
        return Error(Errc::wrong_kind,
                     "it is in use as " + describe_use(r) + " by '" + r.who->label +
                         "'; use another name, or wait until nobody uses it",
                     {.resource = part.resource, .node = {}, .maybe_held = false});
      }
      if (is_slots(r.mode) && r.capacity != part.capacity) {
        return Error(Errc::wrong_capacity,
                     "it is in use as " + describe_use(r) + ", and " +
                         std::to_string(part.capacity) +
                         " was asked for; all clients have to agree",
                     {.resource = part.resource, .node = {}, .maybe_held = false});
      }
      return std::nullopt;
    };
    // All records of a row are of one kind, so the first one tells.
    const Row& row = it->second;
    if (!row.holders.empty()) {
      if (auto error = check(row.holders.front())) return error;
    } else if (!row.queue.empty()) {
      if (auto error = check(row.queue.begin()->second)) return error;
    }
  }
  return std::nullopt;
}

LockTable::Hindrance LockTable::hindrance(const Part& part, const Claim& claim,
                                          const Ticket& ticket, const Row& row) const {
  Hindrance found;
  const auto note = [&](const Record& r) {
    found.any = true;
    found.ends = std::min(found.ends, r.expires);
  };
  const auto own = [&](const Record& r) { return is_own(r, claim); };

  if (!fits(row, part.mode, part.slots, part.capacity, *claim.who, own)) {
    for (const auto& h : row.holders) {
      if (own(h) || (!is_slots(h.mode) && same_identity(*h.who, *claim.who))) continue;
      if (conflicts(h.mode, part.mode)) note(h);
    }
  }
  // Whoever waits here may wait for this very identity: it must not wait for them.
  if (!is_slots(part.mode) && own_hold(row, *claim.who, Mode::shared) != nullptr) return found;
  for (const auto& [place, w] : row.queue) {
    if (!(place < ticket)) break;
    if (own(w) || !conflicts(w.mode, part.mode)) continue;
    note(w);
    break;  // one is enough, and those behind it wait for it, too
  }
  return found;
}

Answer LockTable::grant(const Claim& claim, const Origin& origin, TimePoint now,
                        std::vector<Wake>& wakes) {
  Answer answer{.verdict = Verdict::granted};
  answer.fences.reserve(claim.parts.size());
  for (const auto& part : claim.parts) {
    Row& row = rows_[part.resource];
    Record record = make_record(claim, part, origin, now, claim.ttl);
    const Record* before = claim.instead_of.empty() ? nullptr : find_holder(row, claim.instead_of);
    const Mode mode_before = before == nullptr ? part.mode : before->mode;
    // Not a new grant: a hold that goes on, no stronger than it was. And the same identity gets its
    // own claim back: with a fresh fence, its outer writes would be refused after its inner ones.
    const bool stronger = mode_before == Mode::shared && part.mode == Mode::exclusive;
    if (stronger) before = nullptr;
    if (before == nullptr && !is_slots(part.mode)) before = own_hold(row, *claim.who, part.mode);
    record.fence = before != nullptr ? before->fence : rules_.next_fence(part.resource);
    answer.fences.push_back(Fence{record.fence});
    std::erase_if(row.holders, [&](const Record& r) { return r.owner == claim.instead_of; });
    row.expects(record);
    row.holders.push_back(std::move(record));
    if (mode_before != part.mode && !stronger) wake_next(row, wakes);
  }
  return answer;
}

Answer LockTable::rearm(const Claim& claim, const Origin& origin, TimePoint now) {
  Answer answer{.verdict = Verdict::granted};
  for (const auto& part : claim.parts) {
    Record& record = *find_holder(rows_.find(part.resource)->second, claim.owner);
    // Never shorter: this may be a late copy of an old message.
    record.expires = std::max(record.expires, now + claim.ttl);
    // Whoever renews for another process may see it from another place, or not at all.
    const bool same_process = !origin.own && record.who->pid == claim.who->pid;
    if (same_process) {
      record.origin.home = origin.home;
    } else {
      record.origin = origin;
    }
    record.who = claim.who;
    answer.fences.push_back(Fence{record.fence});
  }
  return answer;
}

Answer LockTable::enqueue(const Claim& claim, const Ticket& ticket, const Origin& origin,
                          TimePoint now, TimePoint look) {
  last_ticket_ = std::max(last_ticket_, ticket.number);
  auto& queued = tickets_[claim.owner];
  queued.ticket = ticket;
  Answer answer{.verdict = Verdict::queued};
  for (const auto& part : claim.parts) {
    Row& row = rows_[part.resource];
    // Of a claim that takes over, only the parts that become stronger wait.
    if (ticket.stronger && part.mode != Mode::exclusive) continue;
    const auto [it, fresh] =
        row.queue.try_emplace(ticket, make_record(claim, part, origin, now, rules_.ticket_ttl));
    if (fresh) {
      row.expects(it->second);
      ++queued.rows;
    } else {
      it->second.expires = now + rules_.ticket_ttl;
    }
    const auto ahead = std::next(it) == row.queue.end()
                           ? row.queue.size() - 1
                           : static_cast<std::size_t>(std::distance(row.queue.begin(), it));
    answer.place = std::max(answer.place, static_cast<std::uint32_t>(ahead));
  }
  if (look != TimePoint::max()) answer.look_again = std::max(Duration::zero(), look - now);
  return answer;
}

Answer LockTable::renew(const Claim& claim, const Origin& origin, TimePoint now,
                        std::vector<Wake>& wakes) {
  sweep_rows(claim, now, wakes);
  if (held_by(claim.owner, claim) < claim.parts.size()) return {.verdict = Verdict::lost};
  return rearm(claim, origin, now);
}

Answer LockTable::release(const Claim& claim, std::uint64_t by, TimePoint now,
                          std::vector<Wake>& wakes) {
  std::size_t held = 0;
  bool queued = false;
  sweep_rows(claim, now, wakes);
  const auto waiting = tickets_.find(claim.owner);
  const auto ticket =
      waiting == tickets_.end() ? std::nullopt : std::optional(waiting->second.ticket);
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it == rows_.end()) continue;
    Row& row = it->second;
    const bool left = std::erase_if(row.holders, [&](const Record& r) {
                        if (r.owner != claim.owner) return false;
                        if (r.origin.home != by) wakes.push_back({r.origin.home, r.owner});
                        return true;
                      }) > 0;
    const bool gave_up = ticket && row.queue.erase(*ticket) > 0;
    if (gave_up) leave_row(claim.owner);
    held += left ? 1 : 0;
    queued = queued || gave_up;
    if (left || gave_up) wake_next(row, wakes);
  }
  if (held == claim.parts.size()) return {.verdict = Verdict::granted};
  return {.verdict = held == 0 && queued ? Verdict::queued : Verdict::lost};
}

std::vector<ResourceState> LockTable::inspect(const Query& query, TimePoint now) const {
  std::vector<ResourceState> states;
  const auto add = [&](const std::string& resource, const Row& row) {
    ResourceState state{.resource = resource};
    for (const auto& h : row.holders) {
      if (h.expires > now) state.holders.push_back(make_entry(h, now));
      state.capacity = h.capacity;
    }
    for (const auto& [ticket, w] : row.queue) {
      if (w.expires > now) state.waiters.push_back(make_entry(w, now));
      state.capacity = w.capacity;
    }
    if (!state.holders.empty() || !state.waiters.empty()) states.push_back(std::move(state));
  };
  if (query.resources.empty()) {
    for (const auto& [resource, row] : rows_) {
      if (resource.starts_with(query.prefix)) add(resource, row);
    }
  } else {
    for (const auto& resource : query.resources) {
      if (const auto it = rows_.find(resource); it != rows_.end()) add(resource, it->second);
    }
  }
  std::sort(states.begin(), states.end(),
            [](const ResourceState& a, const ResourceState& b) { return a.resource < b.resource; });
  return states;
}

void LockTable::sweep(TimePoint now, std::vector<Wake>& wakes) {
  calls_since_sweep_ = 0;
  for (auto it = rows_.begin(); it != rows_.end();) {
    sweep_row(it->second, now, wakes);
    it = it->second.idle() ? rows_.erase(it) : std::next(it);
  }
}

std::vector<Record> LockTable::in_the_way(const Claim& claim, std::size_t most) const {
  std::vector<Record> found;
  const auto ticket = tickets_.find(claim.owner);
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it == rows_.end()) continue;
    // Slots that are taken are in nobody's way as long as enough are left.
    const bool enough =
        is_slots(part.mode) && fits(it->second, part.mode, part.slots, part.capacity, *claim.who,
                                    [&](const Record& r) { return is_own(r, claim); });
    for (const auto& h : it->second.holders) {
      if (enough) break;
      if (found.size() == most) return found;
      if (!is_own(h, claim) && conflicts(h.mode, part.mode)) found.push_back(h);
    }
    for (const auto& [place, w] : it->second.queue) {
      if (found.size() == most) return found;
      if (ticket != tickets_.end() && !(place < ticket->second.ticket)) break;
      if (w.owner != claim.owner && conflicts(w.mode, part.mode)) found.push_back(w);
    }
  }
  return found;
}

void LockTable::restore_holder(const std::string& resource, Record record) {
  Row& row = rows_[resource];
  row.expects(record);
  row.holders.push_back(std::move(record));
}

void LockTable::restore_waiter(const std::string& resource, Ticket ticket, Record record) {
  auto& queued = tickets_[record.owner];
  queued.ticket = ticket;
  ++queued.rows;
  Row& row = rows_[resource];
  row.expects(record);
  row.queue.emplace(ticket, std::move(record));
}

void LockTable::leave_queue(const Claim& claim) {
  const auto ticket = tickets_.find(claim.owner);
  if (ticket == tickets_.end()) return;
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it != rows_.end()) it->second.queue.erase(ticket->second.ticket);
  }
  tickets_.erase(ticket);
}

// Its place was before all others, and they waited for it.
void LockTable::give_up(const Claim& claim, std::vector<Wake>& wakes) {
  if (!tickets_.contains(claim.owner)) return;
  leave_queue(claim);
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it != rows_.end()) wake_next(it->second, wakes);
  }
}

// Its place in one row is gone.
void LockTable::leave_row(const Owner& owner) {
  const auto it = tickets_.find(owner);
  if (it != tickets_.end() && --it->second.rows == 0) tickets_.erase(it);
}

void LockTable::wake_behind(const Claim& claim, bool waited, std::vector<Wake>& wakes) const {
  for (const auto& part : claim.parts) {
    if (is_slots(part.mode) ? waited : !claim.who->identity.empty())
      wake_next(rows_.find(part.resource)->second, wakes);
  }
}

void LockTable::sweep_rows(const Claim& claim, TimePoint now, std::vector<Wake>& wakes) {
  for (const auto& part : claim.parts) {
    const auto it = rows_.find(part.resource);
    if (it != rows_.end()) sweep_row(it->second, now, wakes);
  }
  spare(claim.owner, wakes);
}

void LockTable::sweep_row(Row& row, TimePoint now, std::vector<Wake>& wakes) {
  if (now < row.sweep_at) return;
  row.sweep_at = TimePoint::max();
  std::size_t dropped =
      std::erase_if(row.holders, [&](const Record& r) { return r.expires <= now; });
  for (const auto& holder : row.holders) row.expects(holder);
  for (auto it = row.queue.begin(); it != row.queue.end();) {
    if (it->second.expires > now) {
      row.expects(it->second);
      ++it;
      continue;
    }
    leave_row(it->second.owner);
    it = row.queue.erase(it);
    ++dropped;
  }
  if (dropped > 0) wake_next(row, wakes);
}

void LockTable::wake_next(const Row& row, std::vector<Wake>& wakes) const {
  // A waiter whose identity holds the row waits for other holders alone. All others wait for those ahead of them, too: as
  // if those who are woken held it already. A holder that wants more waits until it is the only one.
  const bool identities = std::any_of(row.holders.begin(), row.holders.end(), [](const Record& h) {
    return !is_slots(h.mode) && !h.who->identity.empty();
  });
  std::uint64_t slots = 0;
  bool shared_waits = false;
  bool closed = false;
  for (const auto& [ticket, w] : row.queue) {
    const bool own = identities && own_hold(row, *w.who, Mode::shared) != nullptr;
    if (closed && !own) continue;
    bool fit = row.holders.size() <= 1;
    if (!ticket.stronger || !w.who->identity.empty()) {
      fit = fits(row, w.mode, slots + w.slots, w.capacity, *w.who,
                 [](const Record&) { return false; }) &&
            (own || w.mode != Mode::exclusive || !shared_waits);
    }
    if (fit) wakes.push_back({w.origin.home, w.owner});
    closed = closed || !fit || w.mode == Mode::exclusive;
    if (closed && !identities) return;
    shared_waits = shared_waits || w.mode == Mode::shared;
    slots += w.slots;
  }
}

}  // namespace interlock
