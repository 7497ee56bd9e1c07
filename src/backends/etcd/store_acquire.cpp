#include <algorithm>
#include <utility>

#include "backends/etcd/record.hpp"
#include "backends/etcd/store.hpp"

namespace interlock::etcd {

namespace {

// Claims on more than this are decided over what was read.
constexpr std::size_t kFew = 4;

// Where it stands in the lane: claims that wait for each other, in the order in which they ask. Names
// have no line breaks.
std::string lane_of(const Claim& claim) {
  const auto own = std::find_if(claim.parts.begin(), claim.parts.end(),
                                [](const Part& part) { return !part.ancestor; });
  const auto& part = own == claim.parts.end() ? claim.parts.front() : *own;
  return part.resource + '\n' + std::to_string(claim.priority);
}

// Of the transaction that is the last operation.
bool last_held(const wire::TxnResponse& response) {
  return response.responses().rbegin()->response_txn().succeeded();
}

// What is wrong with the first record that was read and is of another format; a broken one is in no reader's way.
std::optional<Error> other_format(const wire::TxnResponse& response) {
  std::optional<Error> found;
  each_key(response, [&](const wire::KeyValue& kv) {
    try {
      (void)decode(kv.value(), BootClock::now(), kv.key());
    } catch (const Error& error) {
      if (error.errc() == Errc::refused && !found) found = error;
    }
  });
  return found;
}

void append(Ops& all, Ops more) {
  for (auto& one : more) all.push_back(std::move(one));
}

void append(std::vector<wire::Compare>& all, std::vector<wire::Compare> more) {
  for (auto& one : more) all.push_back(std::move(one));
}

}  // namespace

std::vector<std::string> Store::keys_of(const Claim& claim, Seat seat) {
  const auto chair = chairs_.of(claim.owner);
  std::vector<std::string> keys;
  const bool hurries = claim.priority != 0 || !claim.instead_of.empty();
  for (const auto& part : claim.parts) {
    if (seat == Seat::holds) {
      const bool alone = part.mode == Mode::exclusive;
      keys.push_back(
          keys_.key(part.resource, holders_letter(part.mode), alone ? Keys::kExclusive : chair));
      continue;
    }
    const auto letter = part.mode == Mode::shared ? Letter::reads : Letter::waits;
    keys.push_back(keys_.key(part.resource, hurries ? Letter::hurries : letter, chair));
  }
  return keys;
}

bool Store::plain(const Claim& claim) {
  const auto free_to_share = [&](const Part& part) {
    return part.mode != Mode::shared || shares_alike(claim, part);
  };
  return claim.priority == 0 && claim.instead_of.empty() && claim.parts.size() <= kFew &&
         std::all_of(claim.parts.begin(), claim.parts.end(), free_to_share);
}

// An identity that shares it already gets its own fence back: that has to be read.
bool Store::shares_alike(const Claim& claim, const Part& part) {
  return part.mode == Mode::shared && claim.who->identity.empty();
}

std::vector<wire::Compare> Store::free_for(const Ask& ask) {
  const auto& claim = ask.claim;
  const auto holds = keys_of(claim, Seat::holds);
  const auto waits = keys_of(claim, Seat::waits);
  std::vector<wire::Compare> all{not_recalled(ask)};
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    if (claim.parts.size() > kFew || !shares_alike(claim, part)) {
      all.push_back(none(keys_.row(part.resource)));
      continue;
    }
    all.push_back(none(keys_.range(part.resource, Letter::holds)));
    all.push_back(none(keys_.range(part.resource, Letter::hurries, Letter::waits)));
    all.push_back(created(holds[i], 0));
    all.push_back(created(waits[i], 0));
  }
  return all;
}

std::vector<wire::Compare> Store::no_holder(const Ask& ask) {
  const auto& claim = ask.claim;
  const auto holds = keys_of(claim, Seat::holds);
  std::vector<wire::Compare> all;
  for (std::size_t i = 0; i < claim.parts.size(); ++i) {
    const auto& part = claim.parts[i];
    if (!shares_alike(claim, part)) {
      all.push_back(none(keys_.holders(part.resource)));
      continue;
    }
    all.push_back(none(keys_.range(part.resource, Letter::holds)));
    all.push_back(created(holds[i], 0));
  }
  return all;
}

std::vector<wire::Compare> Store::first_in_line(const Claim& claim, const Wait& wait,
                                                bool nobody) const {
  std::vector<wire::Compare> all;
  for (const auto& key : wait.keys) all.push_back(created(key, wait.created));
  for (const auto& part : claim.parts) {
    all.push_back(none(keys_.range(part.resource, Letter::hurries)));
    const auto those = keys_.range(part.resource, Letter::waits);
    if (part.mode != Mode::shared) {
      // It is one of them itself.
      all.push_back(created_after(keys_.range(part.resource, Letter::waits, Letter::reads),
                                  wait.created - 1));
    } else {
      all.push_back(nobody ? none(those) : created_after(those, wait.created));
    }
  }
  return all;
}

std::vector<wire::Compare> Store::behind_somebody(const Ask& ask) {
  const auto& part = ask.claim.parts.front();
  auto all = not_in_line(ask);
  all.push_back(none(keys_.range(part.resource, Letter::hurries)));
  const auto last = part.mode == Mode::shared ? Letter::waits : Letter::reads;
  all.push_back(created_after(keys_.range(part.resource, Letter::waits, last), 0));
  return all;
}

// Its own place is read as well.
Ops Store::end_of_line(const Claim& claim) const {
  const auto& part = claim.parts.front();
  if (part.mode == Mode::shared) {
    return {read_last(keys_.range(part.resource, Letter::waits), 1),
            read_last(keys_.range(part.resource, Letter::reads), 1)};
  }
  return {read_last(keys_.range(part.resource, Letter::waits, Letter::reads), 2)};
}

// An owner that holds it has to be told so.
bool Store::brief(const Ask& ask) const {
  const auto& claim = ask.claim;
  return ask.queue && claim.parts.size() == 1 && plain(claim) && claim.who->identity.empty() &&
         !book_.hold(claim.owner);
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

// In this order: if another call begins after it was looked for, that one's recall is newer.
bool Store::may_make_keys(Ask& ask) const {
  const auto recalled = recalled_.load();
  if (!book_.is_last(ask.call)) return false;
  ask.sent_under = recalled;
  return true;
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

// Conditions tell keys apart by their names, so they can't see of which format a record is.
Ops Store::one_reader_each(const Claim& claim) const {
  Ops ops;
  for (const auto& part : claim.parts) {
    if (shares_alike(claim, part))
      ops.push_back(read_first(keys_.range(part.resource, Letter::shares), 1, 0));
  }
  return ops;
}

void Store::share(const AskPtr& ask, const wire::TxnResponse& response, Call call) {
  const auto foreign = other_format(response);
  if (!foreign) return granted(ask, response, make_hold(*ask), ask->claim.ttl);
  Ops ops;
  for (const auto& key : keys_of(ask->claim, Seat::holds))
    ops.push_back(only_if({created(key, response.header().revision())}, {erase(key)}));
  send(ask, transaction({}, std::move(ops)), call,
       [this, ask, foreign](const wire::TxnResponse&, Call) {
         watcher_.unwatch(ask->claim.owner);
         lane_.drop(ask->claim.owner);
         forget(*ask);
         ask->reply(Answer::failed(*foreign));
       });
}

void Store::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  auto [under_way, another] = book_.begin(claim.owner);
  const auto ask = make_ask(
      claim, queue, call,
      [keeps = std::move(under_way.under_way), reply = std::move(reply)](Answer answer) mutable {
        keeps.reset();
        reply(std::move(answer));
      });
  ask->call = under_way;
  ask->acquires = true;
  ask->in_doubt = another;
  begin(ask, call);
}

void Store::begin(const AskPtr& ask, Call call) {
  const auto& claim = ask->claim;
  const bool simple = !wide(claim) && claim.instead_of.empty();
  const bool may_be_overtaken = ask->queue && simple && !call.caller_waits;
  if (!ask->in_lane && book_.knows(claim.owner)) {
    lane_.drop(claim.owner);  // an earlier call of its own was answered late
  } else if (!ask->in_lane && (may_be_overtaken || lane_.knows(claim.owner))) {
    call.caller_waits = false;  // another thread may bring the answer
    const auto go = [this, ask, call] {
      ask->in_lane = true;
      // Until it has its answer: whatever that takes, nobody of the lane comes between.
      ask->reply = [this, in_lane = ask.get(), reply = std::move(ask->reply)](Answer answer) {
        const bool heard =
            answer.verdict != Verdict::unknown || (answer.why && !answer.why->retryable());
        leave_lane(*in_lane, heard                ? Lane::Left::answered
                             : in_lane->cut_short ? Lane::Left::early
                                                  : Lane::Left::unanswered);
        reply(std::move(answer));
      };
      begin(ask, call);
    };
    const auto wait = [ask](std::uint32_t behind) {
      ask->reply({.verdict = Verdict::queued, .place = behind});
    };
    return lane_.enter(lane_of(claim), claim.owner, {go, wait, call.deadline});
  }
  const auto go = [this, ask, simple](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->lease = got.id;
    const auto& owner = ask->claim.owner;
    if (book_.take_doubt(owner) || ask->in_doubt) return recall_and_decide(ask, now_on);
    if (const auto wait = ask->queue ? book_.wait(owner, BootClock::now()) : std::nullopt) {
      leave_lane(*ask, Lane::Left::answered);
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

void Store::leave_lane(Ask& ask, Lane::Left how) {
  if (std::exchange(ask.in_lane, false)) lane_.leave(ask.claim.owner, how);
}

void Store::asked_again(const AskPtr& ask) {
  leave_lane(*ask, Lane::Left::early);
  ask->reply(Answer::failed(Error(
      Errc::unreachable, "it was asked for again meanwhile",
      {.resource = ask->claim.parts.front().resource, .node = traits_.where, .maybe_held = true})));
}

// The short way: nobody is there, and it is ours. Else we are in line by the time we know.
void Store::take_or_queue(const AskPtr& ask, Call call) {
  if (!may_make_keys(*ask)) return asked_again(ask);
  const auto now = BootClock::now();
  Ops otherwise;
  ask->waiters_lease = ask->queue ? leases_.waiters() : 0;
  const auto lease = ask->waiters_lease;
  const bool brief = this->brief(*ask);
  if (lease != 0)
    otherwise.push_back(only_if(not_in_line(*ask), seats(*ask, Seat::waits, lease, now)));
  if (brief) {
    otherwise.push_back(only_if(behind_somebody(*ask), lease != 0 ? end_of_line(ask->claim) : Ops{},
                                reads(ask->claim)));
  } else {
    for (auto& op : reads(ask->claim)) otherwise.push_back(std::move(op));
  }
  auto take = one_reader_each(ask->claim);
  append(take, seats(*ask, Seat::holds, ask->lease, now));
  send_bundled(ask, transaction(free_for(*ask), std::move(take), std::move(otherwise)), call,
               once(ask, [this, ask, brief, lease](const wire::TxnResponse& response, Call now_on) {
                 if (response.succeeded()) return share(ask, response, now_on);
                 const bool whole = !brief || !last_held(response);
                 if (!whole && lease == 0) return enqueue(ask, now_on);
                 decide(ask, response, now_on, whole);
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

// Whoever it waits for is there, and so is it. And nobody of its identity holds it by now, who would
// let it in.
std::vector<wire::Compare> Store::same(const Wait& wait) const {
  std::vector<wire::Compare> all{created(wait.keys.front(), wait.created),
                                 created(wait.ahead->key, wait.ahead->created)};
  if (wait.ahead->written != 0) all.push_back(written(wait.ahead->key, wait.ahead->written));
  if (wait.claim.who->identity.empty()) return all;
  for (const auto& part : wait.claim.parts)
    all.push_back(none_created_since(keys_.holders(part.resource), wait.seen));
  return all;
}

// While it is watched, usually nothing has changed: no need to say what it would do then.
void Store::still_in_line(const AskPtr& ask, const Wait& wait, Call call) {
  (void)leases_.waiters();
  // What it takes over may be gone; and if no part becomes stronger, it has no place in line.
  const auto& claim = ask->claim;
  if (!claim.instead_of.empty() || (wide(claim) && !claim.who->identity.empty()))
    return look(ask, call);
  const auto& ahead = wait.ahead;
  if (!ahead || ahead->expires <= BootClock::now() || !watcher_.watches(claim.owner))
    return my_turn(ask, wait, call);
  bundler_.txn({}, transaction(same(wait), {}), call,
               handle(ask, [this, ask, wait](const Txn& outcome, Call now_on) {
                 if (!outcome.response.succeeded()) return my_turn(ask, wait, now_on);
                 same_place(ask, wait, outcome.response);
               }));
}

void Store::my_turn(const AskPtr& ask, const Wait& wait, Call call) {
  const auto& claim = ask->claim;
  const auto& ahead = wait.ahead;
  enum class Found { same, promoted, free, first };
  std::vector<Found> found;
  std::vector<Case> cases;
  const auto add = [&](Found what, std::vector<wire::Compare> all, Ops then) {
    found.push_back(what);
    cases.push_back({std::move(all), std::move(then)});
  };
  if (ahead && ahead->expires > BootClock::now()) add(Found::same, same(wait), {});
  if (ahead && !ahead->next.empty() && claim.who->identity.empty()) {
    add(Found::promoted,
        {created(wait.keys.front(), wait.created), created_after(ahead->next, wait.seen)},
        {read(ahead->next)});
  }
  const bool takes = plain(claim);
  if (takes) {
    if (!may_make_keys(*ask)) return asked_again(ask);
    auto take = one_reader_each(claim);
    append(take, seats(*ask, Seat::holds, ask->lease, BootClock::now()));
    for (const auto& key : wait.keys) take.push_back(erase(key));
    const bool shares = std::any_of(claim.parts.begin(), claim.parts.end(),
                                    [](const Part& part) { return part.mode == Mode::shared; });
    const auto add_free = [&](std::vector<wire::Compare> all) {
      append(all, no_holder(*ask));
      all.push_back(not_recalled(*ask));
      add(Found::free, std::move(all), take);
    };
    if (shares) add_free(first_in_line(claim, wait, true));
    const auto first = first_in_line(claim, wait, false);
    add_free(first);
    Ops holders{read(recall_key_)};
    for (const auto& part : claim.parts) holders.push_back(read(keys_.holders(part.resource)));
    for (const auto& key : wait.keys) holders.push_back(read(key));
    add(Found::first, first, std::move(holders));
  }
  auto request = first_of(std::move(cases), reads(claim));
  const auto then = [this, ask, wait, found](const wire::TxnResponse& response, Call now_on) {
    const auto at = which(response, found.size());
    if (at == found.size() || found[at] == Found::first) return decide(ask, response, now_on);
    if (found[at] == Found::same) return same_place(ask, wait, response);
    if (found[at] == Found::promoted) return now_behind_holder(ask, wait, response);
    share(ask, response, now_on);
  };
  if (!takes) return send(ask, std::move(request), call, then);
  rpc_.txn(std::move(request), call, once(ask, then));
}

void Store::same_place(const AskPtr& ask, const Wait& wait, const wire::TxnResponse& response) {
  const auto now = BootClock::now();
  const auto& ahead = *wait.ahead;
  Answer answer{.verdict = Verdict::queued, .place = wait.place};
  if (ahead.written != 0) {
    sightings_.see_again(ahead.key, now);
    answer.look_again = std::max(Duration::zero(), ahead.expires - now);
  }
  // Its watch may have ended.
  watcher_.watch(ask->claim.owner, {.range = {ahead.key, ""},
                                    .created = ahead.created,
                                    .seen = response.header().revision(),
                                    .writes = ahead.written != 0});
  ask->reply(std::move(answer));
}

void Store::now_behind_holder(const AskPtr& ask, Wait wait, const wire::TxnResponse& response) {
  const auto now = BootClock::now();
  each_key(response, [&](const wire::KeyValue& kv) {
    const auto value = decode(kv.value(), now, kv.key());
    wait.ahead = Wait::Ahead{
        .key = kv.key(),
        .created = kv.create_revision(),
        .written = kv.mod_revision(),
        .expires = sightings_.see(kv.key(), kv.mod_revision(), kv.value(), now) + value.ttl};
  });
  if (wait.place > 0) --wait.place;
  wait.seen = response.header().revision();
  Answer answer{.verdict = Verdict::queued, .place = wait.place};
  answer.look_again = std::max(Duration::zero(), wait.ahead->expires - now);
  const Target target{.range = {wait.ahead->key, ""},
                      .created = wait.ahead->created,
                      .seen = wait.seen,
                      .writes = true};
  if (!book_.is_last(ask->call)) return asked_again(ask);
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

void Store::decide(const AskPtr& ask, const wire::TxnResponse& response, Call call, bool whole) {
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
  if (!whole) return look(ask, call);
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
  if (!may_make_keys(*ask)) return asked_again(ask);
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
      // Those who share it are in nobody's way who does, too.
      const auto last = shares_alike(claim, part) ? Letter::holds : Letter::shares;
      same.push_back(unchanged_since(keys_.range(part.resource, Letter::holds, last),
                                     rows.last_written(part.resource, last)));
    }
    if (hold.created[i] == 0 && !wide(claim)) same.push_back(created(hold.keys[i], 0));
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
    // A fence that it gets from its identity is the newest one only while that one holds.
    const auto* lender = rows.with_fence(part.resource, hold.fences[i]);
    if (lender != nullptr && lender->record.owner != claim.owner &&
        lender->record.owner != claim.instead_of)
      still(Seat::holds, lender->record.owner);
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
    if (!may_make_keys(*ask)) return asked_again(ask);
    ask->waiters_lease = got.id;
    auto then = seats(*ask, Seat::waits, got.id, BootClock::now());
    const bool brief = this->brief(*ask);
    if (brief) {
      then.push_back(only_if(behind_somebody(*ask), end_of_line(ask->claim), reads(ask->claim)));
    } else {
      for (auto& op : reads(ask->claim)) then.push_back(std::move(op));
    }
    rpc_.txn(transaction(not_in_line(*ask), std::move(then), reads(ask->claim)), now_on,
             once(ask, [this, ask, brief](const wire::TxnResponse& response, Call call_now) {
               const bool whole = !brief || !response.succeeded() || !last_held(response);
               decide(ask, response, call_now, whole);
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
  answer.place += rows.unread();
  Wait wait{.claim = claim, .seen = rows.revision(), .asked = rows.now(), .place = answer.place};
  for (const auto& part : claim.parts) {
    const auto* place = rows.find(part.resource, Seat::waits, claim.owner);
    if (place == nullptr) continue;
    wait.created = place->created;
    wait.keys.push_back(place->key);
  }
  const auto ahead = rows.ahead(table, claim);
  answer.look_again.reset();
  if (ahead) {
    wait.ahead = ahead->key;
    if (ahead->expires != TimePoint::max())
      answer.look_again = std::max(Duration::zero(), ahead->expires - rows.now());
  }
  if (!book_.is_last(ask->call)) return asked_again(ask);
  book_.put(std::move(wait));
  if (ahead) watcher_.watch(claim.owner, ahead->target);
  ask->reply(std::move(answer));
}

}  // namespace interlock::etcd
