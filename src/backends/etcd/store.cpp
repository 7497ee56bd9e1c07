#include "backends/etcd/store.hpp"

#include <algorithm>

#include "backends/etcd/record.hpp"

namespace interlock::etcd {

namespace {

constexpr Duration kHeartbeat = std::chrono::seconds(2);
// A waiter that does not ask for so long is forgotten.
constexpr Duration kSilence = 3 * kHeartbeat;

// A request that nobody heard of again arrives within this time, or never.
constexpr Duration kStragglers = std::chrono::seconds(15);

// Nobody is there to hear what came of it.
void nobody_waits(const Outcome<wire::TxnResponse>& /*outcome*/, Call /*call*/) {}

}  // namespace

Store::Store(Settings settings)
    : settings_(std::move(settings)),
      keys_(settings_.prefix),
      rpc_(settings_),
      leases_(rpc_,
              [this](LeaseId id) {
                for (const auto& owner : book_.on_lease(id)) sink_(owner);
              }),
      watcher_(rpc_,
               {.wake = [this](const Owner& owner) { sink_(owner); },
                .check = [this](const Owner& owner, const Target& target) { check(owner, target); },
                .written =
                    [this](const wire::KeyValue& kv) {
                      sightings_.see(kv.key(), kv.mod_revision(), BootClock::now());
                    }}) {
  sink_ = [](const Owner&) {};
  traits_.name = "etcd";
  traits_.where = settings_.where();
  traits_.heartbeat = kHeartbeat;
  traits_.call_timeout = settings_.call_timeout;
  traits_.drift_rate = 0.001;
  rpc_.start([this] { tick(); });
}

Store::~Store() { rpc_.stop(); }

Store::AskPtr Store::make_ask(const Claim& claim, bool queue, Call& call, Reply reply) const {
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  auto ask = std::make_shared<Ask>(
      Ask{.claim = claim, .queue = queue, .reply = std::move(reply), .lease = 0});
  if (!ask->claim.who) ask->claim.who = std::make_shared<const Who>();
  return ask;
}

void Store::failed(const AskPtr& ask, const Failure& failure, Call call) {
  leave_lane(ask);
  if (ask->acquires) {
    if (failure.kind == Failure::Kind::no_lease && ask->leases_lost++ < 3) {
      leases_.forget(ask->lease);
      leases_.forget(ask->waiters_lease);
      return begin(ask, call);
    }
    if (failure.kind == Failure::Kind::unreachable)
      book_.doubt(ask->claim, BootClock::now() + ask->claim.ttl + kStragglers);
  }
  ask->reply(Answer::failed(failure.error.about(ask->claim.parts.front().resource)));
}

void Store::send(const AskPtr& ask, wire::TxnRequest request, Call call,
                 std::function<void(const wire::TxnResponse&, Call)> then) {
  rpc_.txn(std::move(request), call,
           handle(ask, [then = std::move(then)](const Outcome<wire::TxnResponse>& outcome,
                                                Call now_on) { then(outcome.response, now_on); }));
}

void Store::send_bundled(const AskPtr& ask, wire::TxnRequest request, Call call,
                         std::function<void(const Outcome<wire::TxnResponse>&, Call)> then) {
  bundler_.txn(ask->claim.owner, std::move(request), call, handle(ask, std::move(then)));
}

Then<wire::TxnResponse> Store::handle(
    const AskPtr& ask, std::function<void(const Outcome<wire::TxnResponse>&, Call)> then) {
  return [this, ask, then = std::move(then)](const Outcome<wire::TxnResponse>& outcome, Call call) {
    if (outcome.failure) return failed(ask, *outcome.failure, call);
    try {
      then(outcome, call);
    } catch (const Error& error) {
      ask->reply(Answer::failed(error.about(ask->claim.parts.front().resource)));
    }
  };
}

// Rows are ordered as their names are, and so are a claim's parts.
Ops Store::reads(const Claim& claim) const {
  Ops ops;
  if (wide(claim)) {
    ops.push_back(read({keys_.row(claim.parts.front().resource).begin,
                        keys_.row(claim.parts.back().resource).end}));
    return ops;
  }
  for (const auto& part : claim.parts) ops.push_back(read(keys_.row(part.resource)));
  return ops;
}

Ops Store::seats(const Ask& ask, Seat seat, LeaseId lease, TimePoint now) {
  Ops ops;
  const auto& claim = ask.claim;
  const std::uint16_t turn = seat == Seat::waits ? ++turn_ : 0;
  for (const auto& part : claim.parts) {
    const bool stronger = !claim.instead_of.empty();
    // Of a claim that takes over, only the parts that become stronger wait.
    if (seat == Seat::waits && stronger && part.mode != Mode::exclusive) continue;
    Value value{.record = {.mode = part.mode,
                           .slots = part.slots,
                           .capacity = part.capacity,
                           .ancestor = part.ancestor,
                           .priority = claim.priority,
                           .since = now,
                           .who = claim.who},
                .ttl = claim.ttl,
                .stronger = stronger,
                .turn = turn};
    ops.push_back(put(keys_.key(part.resource, seat, claim.owner), encode(value, now), lease));
  }
  return ops;
}

std::vector<wire::Compare> Store::not_there(const Claim& claim) const {
  std::vector<wire::Compare> all;
  for (const auto& part : claim.parts) {
    if (all.size() >= kOpsAtOnce) break;
    all.push_back(created(keys_.key(part.resource, Seat::holds, claim.owner), 0));
    all.push_back(created(keys_.key(part.resource, Seat::waits, claim.owner), 0));
  }
  return all;
}

void Store::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  const auto ask = make_ask(claim, queue, call, std::move(reply));
  ask->acquires = true;
  begin(ask, call);
}

void Store::begin(const AskPtr& ask, Call call) {
  leases_.for_holder(ask->claim.ttl, call, [this, ask](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->lease = got.id;
    const auto& claim = ask->claim;
    if (const auto wait = ask->queue ? book_.wait(claim.owner, BootClock::now()) : std::nullopt)
      return still_in_line(ask, *wait, now_on);
    if (wide(claim) || !claim.instead_of.empty()) return look(ask, now_on);
    if (ask->queue && !now_on.caller_waits) return enter_lane(ask, now_on);
    take_or_queue(ask, now_on);
  });
}

void Store::enter_lane(const AskPtr& ask, Call call) {
  lane_.enter(ask->claim.parts.front().resource, [this, ask, call] {
    ask->in_lane = true;
    // It has to get in line in one step.
    leases_.for_waiter(call, [this, ask](const Leases::Got& got, Call now_on) {
      if (got.failure) return failed(ask, *got.failure, now_on);
      take_or_queue(ask, now_on);
    });
  });
}

void Store::leave_lane(const AskPtr& ask) {
  if (std::exchange(ask->in_lane, false)) lane_.leave(ask->claim.parts.front().resource);
}

// The short way: nobody is there, and it is ours. If somebody is, we are in line by the time we know.
void Store::take_or_queue(const AskPtr& ask, Call call) {
  const auto now = BootClock::now();
  std::vector<wire::Compare> free;
  for (const auto& part : ask->claim.parts)
    free.push_back(unchanged_since(keys_.row(part.resource), 0));
  Ops otherwise;
  ask->waiters_lease = ask->queue ? leases_.waiters() : 0;
  if (const auto lease = ask->waiters_lease; lease != 0)
    otherwise.push_back(only_if(not_there(ask->claim), seats(*ask, Seat::waits, lease, now)));
  for (auto& op : reads(ask->claim)) otherwise.push_back(std::move(op));
  send_bundled(
      ask,
      transaction(std::move(free), seats(*ask, Seat::holds, ask->lease, now), std::move(otherwise)),
      call, [this, ask](const Outcome<wire::TxnResponse>& outcome, Call now_on) {
        leave_lane(ask);
        if (outcome.response.succeeded())
          return granted(ask, outcome.response, make_hold(*ask), ask->claim.ttl);
        decide(ask, read_rows(ask->claim, outcome), now_on);
      });
}

// Usually nothing has changed, or the one ahead holds it now: no need to read the whole line.
void Store::still_in_line(const AskPtr& ask, const Wait& wait, Call call) {
  (void)leases_.waiters();
  const auto& ahead = wait.ahead;
  if (!ahead || ahead->expires <= BootClock::now()) return look(ask, call);
  const auto own = keys_.key(wait.resource, Seat::waits, ask->claim.owner);
  std::vector<wire::Compare> same{created(own, wait.created), created(ahead->key, ahead->created)};
  if (ahead->written != 0) same.push_back(written(ahead->key, ahead->written));
  Ops otherwise = reads(ask->claim);
  if (!ahead->next.empty()) {
    auto all = only_if({created(own, wait.created), there(ahead->next)}, {read(ahead->next)},
                       std::move(otherwise));
    otherwise = {std::move(all)};
  }
  send(ask, transaction(std::move(same), {}, std::move(otherwise)), call,
       [this, ask, wait](const wire::TxnResponse& response, Call now_on) {
         if (!response.succeeded()) {
           const bool promoted =
               response.responses_size() > 0 && response.responses(0).response_txn().succeeded();
           if (promoted) return now_behind_holder(ask, wait, response);
           return decide(ask, response, now_on);
         }
         const auto now = BootClock::now();
         Answer same_place{.verdict = Verdict::queued, .place = wait.place};
         if (wait.ahead->written != 0) {
           sightings_.see(wait.ahead->key, wait.ahead->written, now);
           same_place.look_again = std::max(Duration::zero(), wait.ahead->expires - now);
         }
         ask->reply(std::move(same_place));
       });
}

void Store::now_behind_holder(const AskPtr& ask, Wait wait, const wire::TxnResponse& response) {
  const auto now = BootClock::now();
  each_key(response, [&](const wire::KeyValue& kv) {
    const auto value = decode(kv.value(), now, kv.key());
    wait.ahead =
        Wait::Ahead{.key = kv.key(),
                    .created = kv.create_revision(),
                    .written = kv.mod_revision(),
                    .expires = sightings_.see(kv.key(), kv.mod_revision(), now) + value.ttl};
  });
  if (wait.place > 0) --wait.place;
  Answer answer{.verdict = Verdict::queued, .place = wait.place};
  answer.look_again = std::max(Duration::zero(), wait.ahead->expires - now);
  const Target target{
      .range = {wait.ahead->key, ""}, .seen = response.header().revision(), .writes = true};
  book_.put(std::move(wait));
  watcher_.watch(ask->claim.owner, target);
  ask->reply(std::move(answer));
}

// On the background thread. Where several are in the way, whoever waits looks for itself.
void Store::check(const Owner& owner, const Target& target) {
  if (!target.range.end.empty()) return sink_(owner);
  const Call call{.deadline = BootClock::now() + traits_.call_timeout};
  rpc_.txn(transaction({there(target.range.begin)}, {}), call,
           [this, owner](const Outcome<wire::TxnResponse>& outcome, Call) {
             if (!outcome.failure && !outcome.response.succeeded()) sink_(owner);
           });
}

void Store::look(const AskPtr& ask, Call call) {
  send(ask, transaction({}, reads(ask->claim)), call,
       [this, ask](const wire::TxnResponse& response, Call now_on) {
         decide(ask, response, now_on);
       });
}

Rows Store::read_rows(const Claim& claim, const Outcome<wire::TxnResponse>& outcome) {
  Rows rows(keys_, sightings_, BootClock::now());
  rows.only(claim);
  rows.add(outcome.response, outcome.bundled);
  return rows;
}

void Store::decide(const AskPtr& ask, const wire::TxnResponse& response, Call call) {
  decide(ask, read_rows(ask->claim, {.failure = {}, .response = response}), call);
}

void Store::decide(const AskPtr& ask, const Rows& rows, Call call) {
  if (BootClock::now() >= call.deadline) {
    return failed(ask,
                  {.kind = Failure::Kind::unreachable,
                   .error = Error(Errc::unreachable, "others kept changing it for too long",
                                  {.resource = {}, .node = traits_.where, .maybe_held = false})},
                  call);
  }
  const auto& claim = ask->claim;
  std::size_t should_wait = 0;
  std::size_t waits = 0;
  for (const auto& part : claim.parts) {
    if (claim.instead_of.empty() || part.mode == Mode::exclusive) ++should_wait;
    if (rows.find(part.resource, Seat::waits, claim.owner) != nullptr) ++waits;
  }
  const bool in_line = waits == should_wait;
  // Thrown out of one of several lines: it has to begin anew, or its places would differ.
  if (waits != 0 && !in_line)
    return leave_line(ask, call, [this, ask](Call now_on) { look(ask, now_on); });

  auto table = rows.table();
  std::vector<Wake> wakes;
  auto verdict = table.acquire(claim, ask->queue, {}, rows.now(), wakes);
  // Read in the midst of a transaction that wrote the same row: what else it wrote can't be told.
  const bool blurred = std::any_of(claim.parts.begin(), claim.parts.end(), [&](const Part& part) {
    return rows.last_written(part.resource) > rows.revision();
  });
  if (verdict.verdict == Verdict::granted && blurred) return look(ask, call);
  if (verdict.verdict == Verdict::granted) return commit(ask, rows, table, verdict, call);
  if (verdict.verdict == Verdict::queued) {
    if (!in_line) return enqueue(ask, call);
    return queued(ask, rows, table, std::move(verdict));
  }
  if (waits == 0) return ask->reply(std::move(verdict));
  leave_line(ask, call, [this, ask, verdict](Call) { ask->reply(verdict); });
}

// Only if it is still as it was read. (What was deleted since then was not in the way.)
void Store::commit(const AskPtr& ask, const Rows& rows, const LockTable& table,
                   const Answer& answer, Call call) {
  const auto& claim = ask->claim;
  std::vector<wire::Compare> same;
  if (wide(claim)) {
    same.push_back(unchanged_since(
        {keys_.row(claim.parts.front().resource).begin, keys_.row(claim.parts.back().resource).end},
        rows.last_written()));
  }
  auto ops = rows.changes(table, ask->lease);
  auto hold = make_hold(*ask);
  auto ttl = claim.ttl;
  bool waits = false;
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    hold.fences[i] = answer.fences[i].value;
    if (!wide(claim))
      same.push_back(
          unchanged_since(keys_.holders(part.resource), rows.last_written(part.resource)));
    const auto still = [&](Seat seat, const Owner& owner) {
      const auto* entry = rows.find(part.resource, seat, owner);
      if (entry == nullptr) return false;
      if (same.size() < 2 * kOpsAtOnce)
        same.push_back(created(keys_.key(part.resource, seat, owner), entry->created));
      return true;
    };
    if (still(Seat::holds, claim.owner)) {
      const auto& entry = *rows.find(part.resource, Seat::holds, claim.owner);
      hold.created[i] = entry.created;
      hold.since = entry.record.since;
      ttl = std::max(ttl, entry.record.expires - rows.now());
    }
    if (!claim.instead_of.empty()) still(Seat::holds, claim.instead_of);
    // All its places were taken in one step, and one of them tells of all.
    if (rows.find(part.resource, Seat::waits, claim.owner) == nullptr) continue;
    if (!std::exchange(waits, true)) still(Seat::waits, claim.owner);
    ops.push_back(erase(keys_.key(part.resource, Seat::waits, claim.owner)));
  }
  send(ask, transaction(std::move(same), std::move(ops), reads(claim)), call,
       [this, ask, hold, ttl](const wire::TxnResponse& response, Call now_on) {
         if (!response.succeeded()) return decide(ask, response, now_on);
         granted(ask, response, hold, ttl);
       });
}

Hold Store::make_hold(const Ask& ask) const {
  Hold hold{.claim = ask.claim, .lease = ask.lease, .since = BootClock::now()};
  hold.created.resize(ask.claim.parts.size());
  hold.fences.resize(ask.claim.parts.size());
  return hold;
}

void Store::enqueue(const AskPtr& ask, Call call) {
  leases_.for_waiter(call, [this, ask](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->waiters_lease = got.id;
    auto then = seats(*ask, Seat::waits, got.id, BootClock::now());
    for (auto& op : reads(ask->claim)) then.push_back(std::move(op));
    send(ask, transaction(not_there(ask->claim), std::move(then), reads(ask->claim)), now_on,
         [this, ask](const wire::TxnResponse& response, Call call_now) {
           decide(ask, response, call_now);
         });
  });
}

void Store::leave_line(const AskPtr& ask, Call call, std::function<void(Call)> then) {
  Ops ops;
  for (const auto& part : ask->claim.parts)
    ops.push_back(erase(keys_.key(part.resource, Seat::waits, ask->claim.owner)));
  watcher_.unwatch(ask->claim.owner);
  book_.erase(ask->claim.owner);
  send(ask, transaction({}, std::move(ops)), call,
       [then = std::move(then)](const wire::TxnResponse&, Call now_on) { then(now_on); });
}

void Store::granted(const AskPtr& ask, const wire::TxnResponse& response, Hold hold, Duration ttl) {
  const auto revision = response.header().revision();
  Answer yes{.verdict = Verdict::granted};
  for (std::size_t i = 0; i < hold.created.size(); ++i) {
    if (hold.created[i] == 0) hold.created[i] = revision;
    if (hold.fences[i] == 0) hold.fences[i] = static_cast<std::uint64_t>(revision);
    yes.fences.push_back({hold.fences[i]});
  }
  hold.written = revision;
  hold.expires = BootClock::now() + ttl;
  if (ask->acquires) watcher_.unwatch(ask->claim.owner);
  book_.put(std::move(hold));
  ask->reply(std::move(yes));
}

void Store::queued(const AskPtr& ask, const Rows& rows, const LockTable& table, Answer answer) {
  const auto& claim = ask->claim;
  Wait wait{.claim = claim, .asked = rows.now(), .place = answer.place};
  for (const auto& part : claim.parts) {
    const auto* entry = rows.find(part.resource, Seat::waits, claim.owner);
    if (entry == nullptr) continue;
    wait.created = entry->created;
    wait.resource = part.resource;
  }
  const auto ahead = rows.ahead(table, claim);
  answer.look_again.reset();
  if (ahead) {
    wait.ahead = ahead->key;
    if (ahead->expires != TimePoint::max())
      answer.look_again = std::max(Duration::zero(), ahead->expires - rows.now());
  }
  book_.put(std::move(wait));
  if (ahead) watcher_.watch(claim.owner, ahead->target);
  ask->reply(std::move(answer));
}

void Store::renew(const Claim& claim, Call call, Reply reply) {
  const auto ask = make_ask(claim, false, call, std::move(reply));
  auto hold = book_.hold(claim.owner);
  const bool known =
      hold && std::all_of(claim.parts.begin(), claim.parts.end(), [&](const Part& part) {
        return hold->claim.find(part.resource) != nullptr;
      });
  if (!known) return learn_and_renew(ask, call);
  renew_hold(ask, std::move(*hold), call);
}

void Store::learn_and_renew(const AskPtr& ask, Call call) {
  send(ask, transaction({}, reads(ask->claim)), call,
       [this, ask](const wire::TxnResponse& response, Call now_on) {
         const auto& claim = ask->claim;
         const auto rows = read_rows(claim, {.failure = {}, .response = response});
         Hold hold{.claim = claim};
         for (const auto& part : claim.parts) {
           const auto* entry = rows.find(part.resource, Seat::holds, claim.owner);
           if (entry == nullptr) return ask->reply({.verdict = Verdict::lost});
           hold.created.push_back(entry->created);
           hold.fences.push_back(entry->record.fence);
           hold.since = entry->record.since;
           hold.expires = std::max(hold.expires, entry->record.expires);
         }
         renew_hold(ask, std::move(hold), now_on);
       });
}

// Writes what is there, and nothing that is not: etcd compares.
void Store::renew_hold(const AskPtr& ask, Hold hold, Call call) {
  // It never gets shorter.
  const auto ttl = std::max(ask->claim.ttl, hold.expires - BootClock::now());
  leases_.for_holder(ttl, call, [this, ask, hold, ttl](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    const auto now = BootClock::now();
    const auto& claim = ask->claim;
    Hold next{.claim = claim, .lease = got.id, .since = hold.since, .doubt = hold.doubt};
    Ops all;
    std::vector<wire::Compare> there;
    Ops writes;
    for (const auto& part : claim.parts) {
      const auto at =
          static_cast<std::size_t>(hold.claim.find(part.resource) - hold.claim.parts.data());
      const auto at_creation = static_cast<std::uint64_t>(hold.created[at]);
      next.created.push_back(hold.created[at]);
      next.fences.push_back(hold.fences[at]);
      Value value{.record = {.mode = part.mode,
                             .slots = part.slots,
                             .capacity = part.capacity,
                             .ancestor = part.ancestor,
                             .priority = hold.claim.priority,
                             .since = hold.since,
                             .fence = hold.fences[at] == at_creation ? 0 : hold.fences[at],
                             .who = claim.who},
                  .ttl = ttl};
      auto key = keys_.key(part.resource, Seat::holds, claim.owner);
      there.push_back(created(key, hold.created[at]));
      writes.push_back(put(std::move(key), encode(value, now), got.id));
      if (writes.size() < kOpsAtOnce && &part != &claim.parts.back()) continue;
      all.push_back(only_if(std::move(there), std::move(writes)));
      there.clear();
      writes.clear();
    }
    send_bundled(ask, transaction({}, std::move(all)), now_on,
                 [this, ask, next, ttl](const Outcome<wire::TxnResponse>& outcome, Call) {
                   if (all_held(outcome.response)) return granted(ask, outcome.response, next, ttl);
                   book_.erase(ask->claim.owner);
                   ask->reply({.verdict = Verdict::lost});
                 });
  });
}

Ops Store::erase_all(const Claim& claim, bool held) const {
  Ops ops;
  for (const auto& part : claim.parts)
    ops.push_back(erase(keys_.key(part.resource, Seat::holds, claim.owner)));
  // Who holds has left the line in the same step.
  if (held) return ops;
  for (const auto& part : claim.parts)
    ops.push_back(erase(keys_.key(part.resource, Seat::waits, claim.owner)));
  return ops;
}

// The keys have the owner's name: none of anybody else can be meant.
void Store::release(const Claim& claim, Call call, Reply reply) {
  const auto ask = make_ask(claim, false, call, std::move(reply));
  const auto now = BootClock::now();
  const auto hold = book_.hold(claim.owner);
  const bool waits = book_.wait(claim.owner, now).has_value();
  watcher_.unwatch(claim.owner);
  rpc_.txn(
      transaction({}, erase_all(claim, hold.has_value())), call,
      [this, ask, hold, waits](const Outcome<wire::TxnResponse>& outcome, Call now_on) {
        if (outcome.failure) return failed(ask, *outcome.failure, now_on);
        book_.erase(ask->claim.owner);
        const auto found = erased(outcome.response);
        const auto parts = static_cast<std::ptrdiff_t>(ask->claim.parts.size());
        const auto any = [](auto begin, auto end) { return std::find(begin, end, true) != end; };
        bool held = any(found.begin(), found.begin() + parts);
        bool queued = any(found.begin() + parts, found.end());
        // The first copy of this very request may have done it.
        if (outcome.repeated && !held && !queued) {
          held = hold && BootClock::now() < hold->expires;
          queued = waits;
        }
        ask->reply({.verdict = held ? Verdict::granted : queued ? Verdict::queued : Verdict::lost});
      });
}

void Store::inspect(const Query& query, Call call, Report report) {
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  Ops ops;
  for (const auto& resource : query.resources) ops.push_back(read(keys_.row(resource)));
  if (ops.empty()) ops.push_back(read(keys_.all(query.prefix)));
  rpc_.txn(transaction({}, std::move(ops)), call,
           [this, report = std::move(report)](const Outcome<wire::TxnResponse>& outcome, Call) {
             if (outcome.failure) return report({.resources = {}, .why = outcome.failure->error});
             try {
               Rows rows(keys_, sightings_, BootClock::now());
               rows.add(outcome.response);
               Snapshot snapshot{.resources = rows.table().inspect({}, rows.now())};
               for (auto& state : snapshot.resources) {
                 for (auto& waiter : state.waiters)
                   waiter.remaining = std::min<Duration>(waiter.remaining, Leases::kWaiters);
               }
               report(std::move(snapshot));
             } catch (const Error& error) {
               report({.resources = {}, .why = error});
             }
           });
}

void Store::tick() {
  leases_.tick();
  const auto now = BootClock::now();
  const auto due = book_.due(now, kSilence);
  const Call call{.deadline = now + traits_.call_timeout};
  for (const auto& hold : due.holds) {
    Ops ops;
    for (const auto& part : hold.claim.parts) {
      const auto key = keys_.key(part.resource, Seat::holds, hold.claim.owner);
      // Unless somebody else, who took it over, has renewed it.
      ops.push_back(only_if({written(key, hold.written)}, {erase(key)}));
    }
    rpc_.txn(transaction({}, std::move(ops)), call, nobody_waits);
  }
  for (const auto& claim : due.forgotten) {
    watcher_.unwatch(claim.owner);
    rpc_.txn(transaction({}, erase_all(claim, false)), call, nobody_waits);
  }
}

}  // namespace interlock::etcd
