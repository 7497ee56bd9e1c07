#include <algorithm>
#include <utility>

#include "backends/etcd/record.hpp"
#include "backends/etcd/store.hpp"

namespace interlock::etcd {

std::vector<std::string> Store::keys_of(const Claim& claim, Seat seat) {
  const auto chair = chairs_.of(claim.owner);
  std::vector<std::string> keys;
  for (const auto& part : claim.parts) {
    const bool first = seat == Seat::holds && part.mode == Mode::exclusive;
    keys.push_back(keys_.key(part.resource, seat, first ? Keys::kExclusive : chair));
  }
  return keys;
}

Ops Store::seats(const Ask& ask, Seat seat, LeaseId lease, TimePoint now) {
  Ops ops;
  const auto& claim = ask.claim;
  auto keys = keys_of(claim, seat);
  const bool stronger = !claim.instead_of.empty();
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    // Of a claim that takes over, only the parts that become stronger wait.
    if (seat == Seat::waits && stronger && part.mode != Mode::exclusive) continue;
    const Value value{.record = {.owner = claim.owner,
                                 .mode = part.mode,
                                 .slots = part.slots,
                                 .capacity = part.capacity,
                                 .ancestor = part.ancestor,
                                 .priority = claim.priority,
                                 .since = now,
                                 .who = claim.who},
                      .ttl = claim.ttl,
                      .stronger = stronger};
    ops.push_back(put(std::move(keys[i]), encode(value, now), lease));
  }
  return ops;
}

std::vector<wire::Compare> Store::not_in_line(const Ask& ask) {
  std::vector<wire::Compare> all{not_recalled(ask)};
  for (auto& key : keys_of(ask.claim, Seat::waits)) {
    if (all.size() <= kOpsAtOnce) all.push_back(created(std::move(key), 0));
  }
  return all;
}

wire::Compare Store::not_recalled(const Ask& ask) const {
  return unchanged_since({recall_key_, ""}, ask.sent_under);
}

Hold Store::make_hold(const Ask& ask) {
  Hold hold{.claim = ask.claim, .lease = ask.lease, .since = BootClock::now()};
  hold.keys = keys_of(ask.claim, Seat::holds);
  hold.created.resize(ask.claim.parts.size());
  hold.fences.resize(ask.claim.parts.size());
  return hold;
}

void Store::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  const auto ask = make_ask(claim, queue, call, std::move(reply));
  ask->acquires = true;
  begin(ask, call);
}

void Store::begin(const AskPtr& ask, Call call) {
  const bool simple = !wide(ask->claim) && ask->claim.instead_of.empty();
  if (ask->queue && simple && !call.caller_waits && !ask->in_lane &&
      !book_.knows(ask->claim.owner)) {
    return lane_.enter(ask->claim.parts.front().resource, [this, ask, call] {
      ask->in_lane = true;
      // Until it has its answer: whatever that takes, nobody of the lane comes between.
      ask->reply = [this, in_lane = ask.get(), reply = std::move(ask->reply)](Answer answer) {
        leave_lane(*in_lane);
        reply(std::move(answer));
      };
      begin(ask, call);
    });
  }
  const auto go = [this, ask, simple](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->lease = got.id;
    const auto& owner = ask->claim.owner;
    if (book_.take_doubt(owner) || ask->in_doubt) return recall_and_decide(ask, now_on);
    if (const auto wait = ask->queue ? book_.wait(owner, BootClock::now()) : std::nullopt) {
      leave_lane(*ask);
      return still_in_line(ask, *wait, now_on);
    }
    if (!simple) return look(ask, now_on);
    if (!ask->in_lane) return take_or_queue(ask, now_on);
    // It has to get in line in one step.
    leases_.for_waiter(now_on, [this, ask](const Leases::Got& waits, Call still) {
      if (waits.failure) return failed(ask, *waits.failure, still);
      take_or_queue(ask, still);
    });
  };
  leases_.for_holder(ask->claim.ttl, call, go);
}

void Store::leave_lane(Ask& ask) {
  if (std::exchange(ask.in_lane, false)) lane_.leave(ask.claim.parts.front().resource);
}

// The short way: nobody is there, and it is ours. Else we are in line by the time we know.
void Store::take_or_queue(const AskPtr& ask, Call call) {
  const auto now = BootClock::now();
  ask->sent_under = recalled_;
  std::vector<wire::Compare> free{not_recalled(*ask)};
  for (const auto& part : ask->claim.parts)
    free.push_back(unchanged_since(keys_.row(part.resource), 0));
  Ops otherwise;
  ask->waiters_lease = ask->queue ? leases_.waiters() : 0;
  if (const auto lease = ask->waiters_lease; lease != 0)
    otherwise.push_back(only_if(not_in_line(*ask), seats(*ask, Seat::waits, lease, now)));
  for (auto& op : reads(ask->claim)) otherwise.push_back(std::move(op));
  send_bundled(
      ask,
      transaction(std::move(free), seats(*ask, Seat::holds, ask->lease, now), std::move(otherwise)),
      call, once(ask, [this, ask](const wire::TxnResponse& response, Call now_on) {
        if (response.succeeded()) return granted(ask, response, make_hold(*ask), ask->claim.ttl);
        decide(ask, response, now_on);
      }));
}

Then<wire::TxnResponse> Store::once(const AskPtr& ask, Answered then) {
  return handle(ask, [this, ask, then = std::move(then)](const Txn& outcome, Call call) {
    if (outcome.repeated) return recall_and_decide(ask, call);
    then(outcome.response, call);
  });
}

void Store::recall_and_decide(const AskPtr& ask, Call call) {
  recall(ask, call, [this, ask](const wire::TxnResponse& response, Call now_on) {
    decide(ask, response, now_on);
  });
}

// Usually nothing has changed, or the one ahead holds it now: no need to read the whole line.
void Store::still_in_line(const AskPtr& ask, const Wait& wait, Call call) {
  (void)leases_.waiters();
  const auto& ahead = wait.ahead;
  if (!ahead || ahead->expires <= BootClock::now()) return look(ask, call);
  std::vector<wire::Compare> same{created(wait.key, wait.created),
                                  created(ahead->key, ahead->created)};
  if (ahead->written != 0) same.push_back(written(ahead->key, ahead->written));
  Ops otherwise = reads(ask->claim);
  if (!ahead->next.empty()) {
    auto all = only_if({created(wait.key, wait.created), created_after(ahead->next, wait.seen)},
                       {read(ahead->next)}, std::move(otherwise));
    otherwise = {std::move(all)};
  }
  send(ask, transaction(std::move(same), {}, std::move(otherwise)), call,
       [this, ask, wait](const wire::TxnResponse& response, Call now_on) {
         if (!response.succeeded()) {
           const bool promoted = !wait.ahead->next.empty() && response.responses_size() > 0 &&
                                 response.responses(0).response_txn().succeeded();
           if (promoted) return now_behind_holder(ask, wait, response, now_on);
           return decide(ask, response, now_on);
         }
         const auto now = BootClock::now();
         Answer same_place{.verdict = Verdict::queued, .place = wait.place};
         if (wait.ahead->written != 0) {
           sightings_.see_again(wait.ahead->key, now);
           same_place.look_again = std::max(Duration::zero(), wait.ahead->expires - now);
         }
         ask->reply(std::move(same_place));
       });
}

void Store::now_behind_holder(const AskPtr& ask, Wait wait, const wire::TxnResponse& response,
                              Call call) {
  const auto now = BootClock::now();
  const auto& identity = ask->claim.who->identity;
  bool in_the_way = true;
  each_key(response, [&](const wire::KeyValue& kv) {
    const auto value = decode(kv.value(), now, kv.key());
    in_the_way = identity.empty() || value.record.who->identity != identity;
    wait.ahead = Wait::Ahead{
        .key = kv.key(),
        .created = kv.create_revision(),
        .written = kv.mod_revision(),
        .expires = sightings_.see(kv.key(), kv.mod_revision(), kv.value(), now) + value.ttl};
  });
  if (!in_the_way) return look(ask, call);
  if (wait.place > 0) --wait.place;
  wait.seen = response.header().revision();
  Answer answer{.verdict = Verdict::queued, .place = wait.place};
  answer.look_again = std::max(Duration::zero(), wait.ahead->expires - now);
  const Target target{.range = {wait.ahead->key, ""},
                      .created = wait.ahead->created,
                      .seen = wait.seen,
                      .writes = true};
  book_.put(std::move(wait));
  watcher_.watch(ask->claim.owner, target);
  ask->reply(std::move(answer));
}

void Store::look(const AskPtr& ask, Call call) {
  send(ask, transaction({}, reads(ask->claim)), call,
       [this, ask](const wire::TxnResponse& response, Call now_on) {
         decide(ask, response, now_on);
       });
}

void Store::decide(const AskPtr& ask, const wire::TxnResponse& response, Call call) {
  const auto& claim = ask->claim;
  const auto rows = read_rows(claim, response);
  const bool late = BootClock::now() >= call.deadline;
  if (auto over = rows.clear_expired(); !over.empty() && !late) {
    return send(ask, transaction({}, std::move(over)), call,
                [this, ask](const wire::TxnResponse&, Call now_on) { look(ask, now_on); });
  }
  if (rows.occupied(chairs_.of(claim.owner), claim.owner)) chairs_.change(claim.owner);
  std::size_t should_wait = 0;
  std::vector<const Entry*> places;
  for (const auto& part : claim.parts) {
    if (claim.instead_of.empty() || part.mode == Mode::exclusive) ++should_wait;
    if (const auto* place = rows.find(part.resource, Seat::waits, claim.owner))
      places.push_back(place);
  }
  const bool in_line = places.size() == should_wait;
  // Thrown out of one of several lines: it has to begin anew, or its places would differ.
  if (!places.empty() && !in_line && !late)
    return leave_line(ask, places, call, [this, ask](Call now_on) { look(ask, now_on); });

  auto table = rows.table();
  std::vector<Wake> wakes;
  auto verdict = table.acquire(claim, ask->queue, {}, rows.now(), wakes);
  if (verdict.verdict == Verdict::queued && in_line)
    return queued(ask, rows, table, std::move(verdict));
  const bool goes_on = verdict.verdict == Verdict::granted || verdict.verdict == Verdict::queued;
  if (goes_on && late) return out_of_time(ask, call);
  if (verdict.verdict == Verdict::granted) return commit(ask, rows, table, verdict, call);
  if (verdict.verdict == Verdict::queued) return enqueue(ask, call);
  const auto done = [this, ask, verdict](Call) {
    chairs_.free(ask->claim.owner);
    ask->reply(verdict);
  };
  if (places.empty()) return done(call);
  leave_line(ask, places, call, done);
}

// etcd answers, so it is not out of reach: whoever may wait asks again, if it still wants to.
void Store::out_of_time(const AskPtr& ask, Call call) {
  if (ask->queue) return ask->reply({.verdict = Verdict::queued, .look_again = Duration::zero()});
  failed(ask,
         {.kind = Failure::Kind::unreachable,
          .error = Error(Errc::unreachable, "it took longer than the call may take",
                         {.resource = {}, .node = traits_.where, .maybe_held = false})},
         call);
}

// Only if it is still as it was read. (What was deleted since then was not in the way.)
void Store::commit(const AskPtr& ask, const Rows& rows, const LockTable& table,
                   const Answer& answer, Call call) {
  const auto& claim = ask->claim;
  ask->sent_under = recalled_;
  std::vector<wire::Compare> same{not_recalled(*ask)};
  if (wide(claim)) {
    same.push_back(unchanged_since(
        {keys_.row(claim.parts.front().resource).begin, keys_.row(claim.parts.back().resource).end},
        rows.last_written()));
  }
  auto change = rows.change(table, claim, chairs_.of(claim.owner), ask->lease);
  auto hold = make_hold(*ask);
  hold.keys = std::move(change.keys);
  hold.created = std::move(change.created);
  auto ttl = claim.ttl;
  bool waits = false;
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    hold.fences[i] = answer.fences[i].value;
    if (!wide(claim)) {
      same.push_back(
          unchanged_since(keys_.holders(part.resource), rows.last_written(part.resource)));
    }
    const auto still = [&](Seat seat, const Owner& owner) {
      const auto* entry = rows.find(part.resource, seat, owner);
      if (entry != nullptr && same.size() < 2 * kOpsAtOnce)
        same.push_back(created(entry->key, entry->created));
      return entry;
    };
    if (const auto* own = still(Seat::holds, claim.owner)) {
      hold.since = own->record.since;
      ttl = std::max(ttl, own->record.expires - rows.now());
    }
    if (!claim.instead_of.empty()) still(Seat::holds, claim.instead_of);
    const auto* place = rows.find(part.resource, Seat::waits, claim.owner);
    if (place == nullptr) continue;
    // All its places were taken in one step, and one of them tells of all.
    if (!std::exchange(waits, true)) still(Seat::waits, claim.owner);
    change.ops.push_back(erase(place->key));
  }
  rpc_.txn(transaction(std::move(same), std::move(change.ops), reads(claim)), call,
           once(ask, [this, ask, hold, ttl](const wire::TxnResponse& response, Call now_on) {
             if (!response.succeeded()) return decide(ask, response, now_on);
             granted(ask, response, hold, ttl);
           }));
}

void Store::enqueue(const AskPtr& ask, Call call) {
  leases_.for_waiter(call, [this, ask](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->waiters_lease = got.id;
    ask->sent_under = recalled_;
    auto then = seats(*ask, Seat::waits, got.id, BootClock::now());
    for (auto& op : reads(ask->claim)) then.push_back(std::move(op));
    rpc_.txn(transaction(not_in_line(*ask), std::move(then), reads(ask->claim)), now_on,
             once(ask, [this, ask](const wire::TxnResponse& response, Call call_now) {
               decide(ask, response, call_now);
             }));
  });
}

void Store::leave_line(const AskPtr& ask, const std::vector<const Entry*>& places, Call call,
                       std::function<void(Call)> then) {
  Ops ops;
  for (const auto* place : places)
    ops.push_back(only_if({created(place->key, place->created)}, {erase(place->key)}));
  watcher_.unwatch(ask->claim.owner);
  book_.erase(ask->claim.owner);
  send(ask, transaction({}, std::move(ops)), call,
       [then = std::move(then)](const wire::TxnResponse&, Call now_on) { then(now_on); });
}

void Store::queued(const AskPtr& ask, const Rows& rows, const LockTable& table, Answer answer) {
  const auto& claim = ask->claim;
  Wait wait{.claim = claim, .seen = rows.revision(), .asked = rows.now(), .place = answer.place};
  for (const auto& part : claim.parts) {
    const auto* place = rows.find(part.resource, Seat::waits, claim.owner);
    if (place == nullptr) continue;
    wait.created = place->created;
    wait.key = place->key;
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

}  // namespace interlock::etcd
