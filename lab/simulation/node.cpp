#include "node.hpp"

#include <algorithm>

namespace simulation {

namespace {

using Said = Vote::Said;
using Kind = Message::Kind;
using std::chrono::milliseconds;

constexpr std::int64_t kTicketMs = 3000;
constexpr std::int64_t kWokenMs = 1000;

bool is_writer(Mode mode) { return mode == Mode::exclusive; }

}  // namespace

Vote Node::serve(const Message& message, std::size_t home, std::uint64_t clock) {
  now_us_ = clock;
  now_ = static_cast<Ms>(clock / 1000);
  home_ = home;
  met_.clear();
  if (!message.claim) return mend(message);
  asks_ = message.claim.get();
  owner_ = asks_->owner;
  instead_ = asks_->instead_of;
  ttl_ = std::chrono::ceil<milliseconds>(asks_->ttl).count();
  identity_ = asks_->who ? asks_->who->identity : "";
  if (message.kind == Kind::acquire) {
    open(clock);
    if (!ready_) {
      Vote vote{.said = Said::fresh};
      if (wait_) vote.counts = milliseconds(std::max<Ms>(0, *wait_ - now_));
      return vote;
    }
  }
  meet();
  switch (message.kind) {
    case Kind::acquire:
      return acquire(message);
    case Kind::confirm:
      return confirm(message);
    case Kind::yield:
      return yield(message);
    case Kind::renew:
      return renew();
    case Kind::heal:
      return heal(message);
    default:
      return release(message);
  }
}

void Node::restart(Restart how, std::uint64_t run) {
  server_run_ = run;
  keeps_ = how == Restart::durable;
  if (how != Restart::empty) return;
  born_.reset();
  run_ = 0;
  ready_ = false;
  count_ = ticket_ = 0;
  until_ = longest_ = 0;
  wait_.reset();
  most_.clear();
  rows_.clear();
}

std::vector<Node::Use> Node::uses(std::uint64_t clock) const {
  const auto now = static_cast<Ms>(clock / 1000);
  std::vector<Use> uses;
  for (const auto& [name, row] : rows_) {
    if (row.plain && row.plain->ends > now) uses.push_back({name, row.plain->owner, false});
    for (const auto& hold : row.holders) {
      if (hold.ends > now) uses.push_back({name, hold.owner, false});
    }
    for (const auto& [ticket, waiter] : row.queue) {
      if (waiter.ends > now) uses.push_back({name, ticket.owner, true});
    }
  }
  return uses;
}

// redlock_node.lua

void Node::open(std::uint64_t clock) {
  until_ = std::min(until_, now_ + longest_);
  if (wait_) wait_ = std::min(*wait_, now_ + length_);
  if (run_ == server_run_) return;
  if (!born_ || !keeps_) {
    born_ = clock;
    ready_ = false;
    wait_.reset();
  }
  run_ = server_run_;
}

Vote Node::mend(const Message& message) {
  open(now_us_);
  if (!ready_ && message.born == std::to_string(*born_)) {
    if (message.kind == Kind::wait && !wait_) {
      length_ = static_cast<Ms>(message.number);
      wait_ = now_ + length_;
    } else if (message.kind == Kind::repair && wait_ && *wait_ <= now_) {
      ready_ = true;
      count_ = std::max(count_, message.number);
      wait_.reset();
    }
  }
  Vote vote{.said = Said::state};
  vote.state = {.ready = ready_,
                .count = count_,
                .holds = milliseconds(std::max<Ms>(0, until_ - now_)),
                .clock = now_us_,
                .born = std::to_string(*born_)};
  if (wait_) vote.state.wait = milliseconds(std::max<Ms>(0, *wait_ - now_));
  return vote;
}

// rows.lua

void Node::meet() {
  for (const auto& part : asks_->parts) {
    const auto it = rows_.try_emplace(part.resource).first;
    met_.push_back({.name = &it->first, .row = &it->second, .mode = part.mode});
  }
  for (auto& met : met_) sweep(met);
}

Node::Hold* Node::find(Row& row, const Owner& by) {
  const auto it = std::find_if(row.holders.begin(), row.holders.end(),
                               [&](const Hold& hold) { return hold.owner == by; });
  return it == row.holders.end() ? nullptr : &*it;
}

Node::Hold* Node::hold_of(Row& row, const Owner& by) {
  if (by.empty() || row.value == Value::none) return nullptr;
  if (row.value == Value::owner) return row.plain->owner == by ? &*row.plain : nullptr;
  return find(row, by);
}

std::vector<Node::Hold*> Node::others(Row& row) const {
  std::vector<Hold*> found;
  for (auto& hold : row.holders) {
    if (hold.owner != owner_ && hold.owner != instead_) found.push_back(&hold);
  }
  return found;
}

std::size_t Node::count_held(const Owner& by) {
  std::size_t held = 0;
  for (auto& met : met_) {
    met.hold = hold_of(*met.row, by);
    if (met.hold != nullptr) ++held;
  }
  return held;
}

std::optional<Node::Ticket> Node::queued_at(Row& row) const {
  for (const auto& [ticket, waiter] : row.queue) {
    if (ticket.owner == owner_) return ticket;
  }
  return std::nullopt;
}

void Node::settle(Met& met) const {
  auto& row = *met.row;
  if (row.holders.empty()) {
    row.value = Value::none;
    return;
  }
  if (row.value != Value::same) return;
  const bool writer = std::any_of(row.holders.begin(), row.holders.end(),
                                  [](const Hold& hold) { return is_writer(hold.mode); });
  if (!writer) row.value = Value::shared;
}

void Node::drop_hold(Met& met, const Owner& by) {
  auto& row = *met.row;
  if (row.value == Value::owner && row.plain->owner == by) {
    row.plain.reset();
    row.value = Value::none;
  } else {
    std::erase_if(row.holders, [&](const Hold& hold) { return hold.owner == by; });
    settle(met);
  }
}

// redlock_rows.lua: an upgrade that is taken back uncovers the shared hold below it.
void Node::drop_holder(Met& met, const Owner& of) {
  auto& row = *met.row;
  const Owner by = of;
  const auto* record =
      row.value == Value::owner && row.plain->owner == by ? &*row.plain : find(row, by);
  const Owner covered = record == nullptr ? Owner{} : record->covered;
  const bool plain = row.value == Value::owner && row.plain->owner == by;
  drop_hold(met, by);
  if (covered.empty()) return;
  if (!plain) {
    if (instead_.empty() && hold_of(row, covered) != nullptr) drop_hold(met, covered);
  } else if (instead_.empty()) {
    row.holders.clear();
  } else if (find(row, covered) != nullptr) {
    std::erase_if(row.holders, [&](const Hold& hold) { return hold.ends <= now_; });
    if (!row.holders.empty()) row.value = Value::shared;
  }
}

void Node::sweep(Met& met) {
  auto& row = *met.row;
  if (row.value == Value::owner && row.plain->ends <= now_) {
    row.plain.reset();
    row.value = Value::none;
    row.holders.clear();
  }
  if (!is_set(row)) return;
  const auto ended =
      std::erase_if(row.holders, [&](const Hold& hold) { return hold.ends <= now_; });
  if (ended == 0) return;
  const bool all = row.holders.empty();
  settle(met);
  // The keys end with the last holder: then nobody is told.
  if (!all) wake_next(met);
}

bool Node::alive(Row& row, const Ticket& ticket) const {
  const auto it = row.queue.find(ticket);
  it->second.ends = std::min(it->second.ends, now_ + kTicketMs);
  if (it->second.ends > now_) return true;
  row.queue.erase(it);
  return false;
}

std::optional<std::pair<Node::Ticket, Node::Ms>> Node::first_ahead(Row& row, const Ticket* ticket,
                                                                   bool writers_only) {
  for (auto it = row.queue.begin(); it != row.queue.end();) {
    const auto ahead = it->first;
    ++it;
    if (ticket != nullptr && ahead >= *ticket) return std::nullopt;
    if (writers_only && !is_writer(ahead.mode)) continue;
    if (alive(row, ahead)) return std::pair(ahead, row.queue.at(ahead).ends);
  }
  return std::nullopt;
}

bool Node::is_told(Row& row, const Ticket& ticket) {
  auto& waiter = row.queue.at(ticket);
  const bool own = ticket.owner == owner_;
  const bool hears = own || tell_(waiter.home, ticket.owner);
  if (!own && (is_writer(ticket.mode) || !hears))
    waiter.ends = std::min(waiter.ends, now_ + kWokenMs);
  return hears;
}

void Node::wake_own(Row& row, std::map<Ticket, Waiter>::iterator from) {
  if (!is_set(row)) return;
  struct Count {
    int all = 0, writers = 0;
  };
  std::map<std::string, Count> holds;
  Count sum;
  for (const auto& hold : row.holders) {
    auto& of = holds[hold.identity];
    for (auto* count : {&of, &sum}) {
      ++count->all;
      count->writers += is_writer(hold.mode) ? 1 : 0;
    }
  }
  for (auto it = from; it != row.queue.end();) {
    const auto ticket = it->first;
    const auto who = it->second.identity;
    ++it;
    const auto own = who.empty() ? holds.end() : holds.find(who);
    if (own == holds.end()) continue;
    const bool passes =
        is_writer(ticket.mode) ? own->second.all == sum.all : own->second.writers == sum.writers;
    if (passes && alive(row, ticket)) (void)is_told(row, ticket);
  }
}

void Node::wake_next(Met& met) {
  auto& row = *met.row;
  bool readers = false;
  for (auto it = row.queue.begin(); it != row.queue.end();) {
    const auto ticket = it->first;
    ++it;
    if (!alive(row, ticket)) continue;
    const auto here = row.queue.find(ticket);
    bool fits = true;
    if (!ticket.later && here->second.identity.empty()) {
      fits = !is_set(row) || row.holders.size() <= 1;
    } else if (is_writer(ticket.mode)) {
      fits = row.value == Value::none && !readers;
    } else {
      fits = row.value == Value::none || row.value == Value::shared;
    }
    if (!fits) return wake_own(row, here);
    if (is_told(row, ticket)) {
      if (is_writer(ticket.mode)) return wake_own(row, it);
      readers = true;
    }
  }
}

// What is held already goes on, from now; never shorter.
Vote Node::rearm() {
  Vote vote{.said = Said::granted};
  Number floor = 0;
  for (const auto& met : met_) floor = std::max(floor, met.hold->floor.value_or(0));
  for (auto& met : met_) {
    auto& hold = *met.hold;
    hold.floor = floor > 0 ? std::optional(floor) : std::nullopt;
    hold.ends = now_ + std::max(ttl_, std::min(hold.ends - now_, hold.ttl));
    hold.ttl = hold.ends - now_;
    hold.home = home_;
    hold.identity = identity_;
    vote.numbers.push_back(hold.number);
  }
  return vote;
}

// redlock_rows.lua

void Node::share_fence(Row& row, Number fence) {
  for (auto* hold : others(row)) {
    if (hold->identity != identity_) continue;
    hold->number = std::max(fence, hold->number);
    hold->floor = hold->number;
  }
}

void Node::extend_horizon() {
  const auto left = until_ - now_;
  if (left <= 0) longest_ = 0;
  until_ = now_ + std::max(std::min(left, longest_), ttl_);
  longest_ = std::max(longest_, ttl_);
}

bool Node::is_newer(Number attempt) {
  return std::any_of(met_.begin(), met_.end(), [&](const Met& met) {
    const auto* hold = hold_of(*met.row, owner_);
    return hold != nullptr && hold->attempt > attempt;
  });
}

Node::Hold& Node::put(Met& met, Number number, Number hold, const Owner& covered, Number attempt) {
  auto& row = *met.row;
  const Hold made{.owner = owner_,
                  .mode = met.mode,
                  .number = number,
                  .ends = now_ + ttl_,
                  .ttl = ttl_,
                  .hold = hold,
                  .covered = covered,
                  .attempt = attempt,
                  .identity = identity_,
                  .home = home_};
  if (met.mode == Mode::exclusive && identity_.empty()) {
    row.value = Value::owner;
    return row.plain.emplace(made);
  }
  if (row.value == Value::none) row.holders.clear();
  row.value = met.mode == Mode::exclusive || row.value == Value::same ? Value::same : Value::shared;
  row.holders.push_back(made);
  return row.holders.back();
}

// redlock_acquire.lua

Vote Node::acquire(const Message& message) {
  const bool again = count_held(owner_) == met_.size();
  auto hold = count_ + 1;
  bool upgrades = false;
  if (again) {
    hold = met_.front().hold->hold;
    const auto attempt = std::max(message.attempt, met_.front().hold->attempt);
    for (auto& met : met_) met.hold->attempt = attempt;
  } else {
    for (auto& met : met_) {
      const auto* before = hold_of(*met.row, instead_);
      upgrades = upgrades || (before != nullptr && !is_writer(before->mode) && is_writer(met.mode));
    }
  }
  std::optional<Number> place;
  for (auto& met : met_) {
    const auto ticket = queued_at(*met.row);
    if (!ticket) continue;
    if (message.ticket != 0 && ticket->number != message.ticket) {
      leave_queue(*met.row, *ticket);
    } else {
      place = ticket->number;
    }
  }
  if (!place && message.ticket != 0) place = message.ticket;
  if (!place) {
    const auto distance =
        message.proposed > now_us_ ? message.proposed - now_us_ : now_us_ - message.proposed;
    place = std::max(distance < 1'000'000 ? message.proposed : now_us_, ticket_ + 1);
  }
  Vote vote;
  if (again) {
    vote = rearm();
  } else {
    vote = claim(message, *place, hold, upgrades);
  }
  if (vote.said == Said::granted) {
    if (!again) count_ = hold;
    extend_horizon();
    vote.hold = hold;
  } else if (vote.said == Said::queued) {
    ticket_ = std::max(ticket_, *place);
    vote.ticket = *place;
  }
  return vote;
}

// acquire.lua

std::optional<Node::Ms> Node::held_back_by_holders(Met& met) {
  auto& row = *met.row;
  if (row.value == Value::none) return std::nullopt;
  if (row.value == Value::owner) {
    if (row.plain->owner == instead_) return std::nullopt;
    row.plain->ends = std::min(row.plain->ends, now_ + row.plain->ttl);
    return row.plain->ends - now_;
  }
  if (!is_writer(met.mode) && row.value == Value::shared) return std::nullopt;
  if (!identity_.empty() || !instead_.empty()) {
    const auto all = others(row);
    const bool any = std::any_of(all.begin(), all.end(), [&](const Hold* hold) {
      const bool same = !identity_.empty() && hold->identity == identity_;
      return !same && (is_writer(met.mode) || is_writer(hold->mode));
    });
    if (!any) return std::nullopt;
  }
  Ms first = 0;
  for (auto& hold : row.holders) {
    hold.ends = std::min(hold.ends, now_ + hold.ttl);
    first = first == 0 ? hold.ends : std::min(first, hold.ends);
  }
  return first - now_;
}

Node::Hold* Node::own_hold(Met& met, Mode mode) const {
  if (identity_.empty() || !is_set(*met.row)) return nullptr;
  Hold* newest = nullptr;
  for (auto& hold : met.row->holders) {
    const bool lends = hold.identity == identity_ && (is_writer(hold.mode) || !is_writer(mode));
    if (lends && (newest == nullptr || hold.number > newest->number)) newest = &hold;
  }
  return newest;
}

bool Node::goes_on(const Met& met) const {
  return !instead_.empty() && met.hold != nullptr &&
         (is_writer(met.hold->mode) || !is_writer(met.mode));
}

Vote Node::claim(const Message& message, Number place, Number hold, bool upgrades) {
  Vote vote;
  if (count_held(owner_) > 0) return {.said = Said::lost};
  std::optional<Ticket> ticket;
  for (auto& met : met_) {
    if (const auto queued = queued_at(*met.row)) ticket = queued;
  }
  const auto leave_all = [&] {
    for (auto& met : met_) {
      if (const auto queued = queued_at(*met.row)) leave_queue(*met.row, *queued);
    }
  };
  if (!instead_.empty() && count_held(instead_) < met_.size()) {
    std::vector<Met*> left;
    for (auto& met : met_) {
      if (queued_at(*met.row)) left.push_back(&met);
    }
    leave_all();
    for (auto* met : left) wake_next(*met);
    return {.said = Said::lost};
  }
  if (!instead_.empty()) {
    for (auto& met : met_) {
      if (!is_writer(met.mode)) continue;
      const auto first = first_ahead(*met.row, nullptr, false);
      if (first && !first->first.later && first->first.owner != owner_) return {.said = Said::busy};
    }
  }
  const bool one_shot = !ticket && !message.queue && instead_.empty();
  if (!ticket && !one_shot) {
    ticket = Ticket{.later = instead_.empty(),
                    .behind = 2147483647 - std::int64_t{asks_->priority},
                    .number = place,
                    .owner = owner_};
  }
  std::optional<Ms> look;
  for (auto& met : met_) {
    if (goes_on(met)) continue;
    auto ends = held_back_by_holders(met);
    if (!ends && own_hold(met, Mode::shared) == nullptr) {
      std::optional<Ticket> own = ticket;
      if (own) own->mode = met.mode;
      const auto first = first_ahead(*met.row, own ? &*own : nullptr, !is_writer(met.mode));
      if (first) ends = std::max<Ms>(1, first->second - now_);
    }
    if (ends && (!look || *ends < *look)) look = ends;
  }
  if (look) {
    if (!message.queue) return {.said = Said::busy};
    std::uint32_t ahead = 0;
    for (auto& met : met_) {
      if (!is_writer(met.mode) && !ticket->later) continue;
      auto own = *ticket;
      own.mode = met.mode;
      auto& queue = met.row->queue;
      if (const auto before = queued_at(*met.row); before && *before != own) queue.erase(*before);
      queue[own] = {.ends = now_ + kTicketMs, .identity = identity_, .home = home_};
      ahead = std::max(ahead,
                       static_cast<std::uint32_t>(std::distance(queue.begin(), queue.find(own))));
    }
    if (ahead == 1) look = std::min<Ms>(*look, kWokenMs / 2);
    vote.said = Said::queued;
    vote.place = ahead;
    vote.look = milliseconds(std::max<Ms>(1, *look));
    return vote;
  }
  leave_all();
  vote.said = Said::granted;
  const auto covered = upgrades ? instead_ : Owner{};
  for (auto& met : met_) {
    const auto before =
        instead_.empty() || met.hold == nullptr ? std::optional<Hold>() : std::optional(*met.hold);
    const auto mode_before = before ? before->mode : met.mode;
    const bool stronger = !is_writer(mode_before) && is_writer(met.mode);
    Number number = 0;
    if (before && !stronger) {
      number = before->number;
    } else if (const auto* own = own_hold(met, met.mode)) {
      number = own->number;
    }
    if (number == 0) number = hold;
    if (before && !upgrades) drop_holder(met, before->owner);
    put(met, number, hold, covered, message.attempt);
    if (!identity_.empty() || (mode_before != met.mode && !stronger)) wake_next(met);
    vote.numbers.push_back(number);
  }
  if (!identity_.empty()) {
    for (std::size_t i = 0; i < met_.size(); ++i) {
      auto& met = met_[i];
      const auto fence = vote.numbers[i];
      const auto most = most_had(met);
      share_fence(*met.row, 0);
      auto* const own = find(*met.row, owner_);
      own->floor = fence != hold ? fence : most;
      most_had(met) = std::max(most, fence);
    }
  }
  return vote;
}

// redlock_confirm.lua

Vote Node::confirm(const Message& message) {
  if (count_held(owner_) < met_.size() || met_.front().hold->hold != message.hold)
    return {.said = Said::lost};
  for (std::size_t i = 0; i < met_.size(); ++i) {
    auto& met = met_[i];
    auto fence = message.fences[i];
    count_ = std::max(count_, fence);
    auto& hold = *met.hold;
    hold.covered = {};
    if (!identity_.empty()) {
      const auto said = hold.number;
      const auto most = most_had(met);
      const auto floor = hold.floor.value_or(said);
      fence = std::max(fence, floor);
      hold.floor = floor;
      most_had(met) = most == said ? fence : std::max(most, fence);
      hold.number = fence;
      share_fence(*met.row, fence);
    }
    hold.number = fence;
    if (instead_.empty()) continue;
    if (met.row->value == Value::owner) {
      met.row->holders.clear();
    } else if (const auto* before = hold_of(*met.row, instead_)) {
      drop_holder(met, before->owner);
    }
  }
  return {.said = Said::granted};
}

// redlock_yield.lua

Vote Node::yield(const Message& message) {
  if (is_newer(message.attempt)) return {.said = Said::lost};
  for (auto& met : met_) {
    auto& row = *met.row;
    const bool held = hold_of(row, owner_) != nullptr;
    if (held) drop_holder(met, owner_);
    const Ticket own{.later = instead_.empty(),
                     .behind = 2147483647 - std::int64_t{asks_->priority},
                     .number = message.ticket,
                     .owner = owner_,
                     .mode = met.mode};
    const auto before = queued_at(row);
    const bool moved = !before || *before != own;
    if (before && moved) leave_queue(row, *before);
    if (is_writer(met.mode) || instead_.empty())
      row.queue[own] = {.ends = now_ + kTicketMs, .identity = identity_, .home = home_};
    if (held || moved) wake_next(met);
  }
  ticket_ = std::max(ticket_, message.ticket);
  return {.said = Said::granted};
}

// redlock_renew.lua

Vote Node::renew() {
  if (count_held(owner_) < met_.size()) return {.said = Said::lost};
  extend_horizon();
  return rearm();
}

// redlock_heal.lua

Vote Node::heal(const Message& message) {
  if (count_held(owner_) > 0) return {.said = Said::lost};
  for (auto& met : met_) {
    auto& row = *met.row;
    bool free = row.value == Value::none || (!is_writer(met.mode) && row.value == Value::shared);
    if (!free && !identity_.empty() && is_set(row)) {
      const auto all = others(row);
      free = std::all_of(all.begin(), all.end(),
                         [&](const Hold* hold) { return hold->identity == identity_; });
    }
    if (!free) return {.said = Said::lost};
  }
  const auto hold = count_ + 1;
  auto largest = hold;
  for (std::size_t i = 0; i < met_.size(); ++i) {
    auto& met = met_[i];
    auto& row = *met.row;
    if (const auto ticket = queued_at(row)) leave_queue(row, *ticket);
    auto fence = message.fences[i];
    if (!identity_.empty()) {
      fence = std::max(fence, most_had(met));
      most_had(met) = fence;
      if (is_set(row)) share_fence(row, fence);
    }
    largest = std::max(largest, fence);
    auto& made = put(met, fence, hold, {}, Number{1} << 52U);
    if (!identity_.empty()) made.floor = fence;
  }
  count_ = largest;
  extend_horizon();
  return {.said = Said::granted};
}

// redlock_release.lua and release.lua

Vote Node::release(const Message& message) {
  if (message.kind == Kind::undo && is_newer(message.attempt)) return {.said = Said::lost};
  if (message.kind == Kind::release) {
    for (auto& met : met_) {
      auto& row = *met.row;
      if (row.value != Value::owner || row.plain->owner == owner_) continue;
      std::erase_if(row.holders, [&](const Hold& hold) { return hold.owner == owner_; });
    }
  }
  std::size_t held = 0;
  bool queued = false;
  std::vector<bool> changed;
  std::vector<std::optional<std::size_t>> evicted;
  for (auto& met : met_) {
    auto& row = *met.row;
    const auto* hold = hold_of(row, owner_);
    evicted.push_back(hold != nullptr && hold->home != home_ ? std::optional(hold->home)
                                                             : std::nullopt);
    const auto ticket = queued_at(row);
    changed.push_back(hold != nullptr || ticket);
    if (hold != nullptr) {
      drop_holder(met, owner_);
      ++held;
    }
    if (ticket) {
      leave_queue(row, *ticket);
      queued = true;
    }
  }
  for (std::size_t i = 0; i < met_.size(); ++i) {
    if (evicted[i]) (void)tell_(*evicted[i], owner_);
    if (changed[i]) wake_next(met_[i]);
  }
  if (held == met_.size()) return {.said = Said::granted};
  return {.said = held == 0 && queued ? Said::queued : Said::lost};
}

}  // namespace simulation
