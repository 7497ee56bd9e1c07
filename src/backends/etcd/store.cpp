#include "backends/etcd/store.hpp"

#include <algorithm>

#include "backends/etcd/record.hpp"

namespace interlock::etcd {

namespace {

constexpr Duration kHeartbeat = std::chrono::seconds(2);
// A waiter that does not ask for so long is forgotten.
constexpr Duration kSilence = 3 * kHeartbeat;
// A claim in doubt that nobody asks for again within this time is cleaned up.
constexpr Duration kGrace = std::chrono::seconds(15);
// A request that nobody heard of again arrives within this time, or never.
constexpr Duration kStragglers = std::chrono::minutes(5);

bool knows(const Hold& hold, const Claim& claim) {
  return std::all_of(claim.parts.begin(), claim.parts.end(),
                     [&](const Part& part) { return hold.claim.find(part.resource) != nullptr; });
}

std::size_t index(const Hold& hold, const Part& part) {
  return static_cast<std::size_t>(hold.claim.find(part.resource) - hold.claim.parts.data());
}

std::size_t count_erased(const wire::TxnResponse& response) {
  const auto found = erased(response);
  return static_cast<std::size_t>(std::count(found.begin(), found.end(), true));
}

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
                      sightings_.see(kv.key(), kv.mod_revision(), kv.value(), BootClock::now());
                    }}) {
  sink_ = [](const Owner&) {};
  traits_.name = "etcd";
  traits_.where = settings_.where();
  traits_.warnings = settings_.warnings;
  traits_.heartbeat = kHeartbeat;
  traits_.call_timeout = settings_.call_timeout;
  traits_.drift_rate = 0.001;
  if (auto warning = settings_.readable_password()) traits_.warnings.push_back(std::move(*warning));
  rpc_.start([this] { tick(); });
}

Store::~Store() { rpc_.stop(); }

Store::AskPtr Store::make_ask(const Claim& claim, bool queue, Call& call, Reply reply) const {
  const auto enough = BootClock::now() + traits_.call_timeout;  // the caller's is a moment older
  auto ask = std::make_shared<Ask>(Ask{.claim = claim, .queue = queue, .reply = std::move(reply)});
  ask->cut_short = call.deadline < enough - traits_.call_timeout / 10;
  call.deadline = std::min(call.deadline, enough);
  if (!ask->claim.who) ask->claim.who = std::make_shared<const Who>();
  return ask;
}

void Store::failed(const AskPtr& ask, const Failure& failure, Call call) {
  if (failure.kind == Failure::Kind::no_lease) {
    leases_.forget_one_of({ask->lease, ask->recalls_lease, ask->waiters_lease},
                          ask->leases_lost > 0);
    if (ask->acquires && ask->leases_lost++ < 3) return begin(ask, call);
  }
  const bool sent = ask->acquires && ask->sent_under != kNothingSent;
  if (ask->in_doubt || (sent && failure.kind == Failure::Kind::unreachable)) {
    // It may be asked for again, unless it was released while it was on its way.
    const bool wanted = chairs_.has(ask->claim.owner);
    book_.doubt(ask->claim, BootClock::now() + (wanted ? kGrace : Duration::zero()));
  }
  ask->reply(Answer::failed(failure.error.about(ask->claim.parts.front().resource)));
}

void Store::send(const AskPtr& ask, wire::TxnRequest request, Call call, Answered then) {
  rpc_.txn(std::move(request), call,
           handle(ask, [then = std::move(then)](const Txn& outcome, Call now_on) {
             then(outcome.response, now_on);
           }));
}

void Store::send_bundled(const AskPtr& ask, wire::TxnRequest request, Call call,
                         Then<wire::TxnResponse> then) {
  std::vector<std::string> resources;
  for (const auto& part : ask->claim.parts) resources.push_back(part.resource);
  bundler_.txn(std::move(resources), std::move(request), call, std::move(then));
}

Then<wire::TxnResponse> Store::handle(const AskPtr& ask,
                                      std::function<void(const Txn&, Call)> then) {
  return [this, ask, then = std::move(then)](const Txn& outcome, Call call) {
    if (outcome.failure) {
      ask->in_doubt = ask->in_doubt || (ask->acquires && outcome.repeated);
      return failed(ask, *outcome.failure, call);
    }
    try {
      then(outcome, call);
    } catch (const Error& error) {
      ask->reply(Answer::failed(error.about(ask->claim.parts.front().resource)));
    }
  };
}

// Rows are ordered as their names are, and so are a claim's parts.
Ops Store::reads(const Claim& claim) const {
  Ops ops{read(recall_key_)};
  if (wide(claim)) {
    ops.push_back(read({keys_.row(claim.parts.front().resource).begin,
                        keys_.row(claim.parts.back().resource).end}));
    return ops;
  }
  for (const auto& part : claim.parts) ops.push_back(read(keys_.row(part.resource)));
  return ops;
}

Rows Store::read_rows(const Claim& claim, const wire::TxnResponse& response,
                      bool pass_over_broken) {
  Rows rows(keys_, sightings_, BootClock::now());
  rows.only(claim);
  if (pass_over_broken) rows.pass_over_broken();
  rows.add(response);
  each_key(response, [this](const wire::KeyValue& kv) {
    if (kv.key() == recall_key_) recalled_ = kv.mod_revision();
  });
  return rows;
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
  if (ask->acquires) {
    watcher_.unwatch(ask->claim.owner);
    lane_.drop(ask->claim.owner);
  }
  book_.put(std::move(hold));
  ask->reply(std::move(yes));
}

void Store::renew(const Claim& claim, Call call, Reply reply) {
  const auto ask = make_ask(claim, false, call, std::move(reply));
  const auto hold = book_.hold(claim.owner);
  if (!hold || !knows(*hold, claim)) return learn_and_renew(ask, call);
  renew_hold(ask, *hold, call);
}

void Store::learn_and_renew(const AskPtr& ask, Call call) {
  send(ask, transaction({}, reads(ask->claim)), call,
       [this, ask](const wire::TxnResponse& response, Call now_on) {
         const auto& claim = ask->claim;
         const auto rows = read_rows(claim, response);
         Hold hold{.claim = claim};
         for (const auto& part : claim.parts) {
           const auto* entry = rows.find(part.resource, Seat::holds, claim.owner);
           if (entry == nullptr) return ask->reply({.verdict = Verdict::lost});
           hold.keys.push_back(entry->key);
           hold.created.push_back(entry->created);
           hold.fences.push_back(entry->record.fence);
           hold.since = entry->record.since;
           hold.expires = std::max(hold.expires, entry->record.expires);
           hold.claim.priority = entry->record.priority;
         }
         renew_hold(ask, hold, now_on);
       });
}

// Writes what is there, and nothing that is not: etcd compares.
void Store::renew_hold(const AskPtr& ask, const Hold& hold, Call call) {
  // It never gets shorter.
  const auto ttl = std::max(ask->claim.ttl, hold.expires - BootClock::now());
  leases_.for_holder(ttl, call, [this, ask, hold, ttl](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->lease = got.id;
    const auto now = BootClock::now();
    const auto& claim = ask->claim;
    Hold next{.claim = claim, .lease = got.id, .since = hold.since};
    next.claim.priority = hold.claim.priority;
    std::vector<wire::TxnRequest> all;
    std::vector<wire::Compare> there;
    Ops writes;
    for (const auto& part : claim.parts) {
      const auto at = index(hold, part);
      const auto at_creation = static_cast<std::uint64_t>(hold.created[at]);
      next.keys.push_back(hold.keys[at]);
      next.created.push_back(hold.created[at]);
      next.fences.push_back(hold.fences[at]);
      const Value value{.record = {.owner = claim.owner,
                                   .mode = part.mode,
                                   .slots = part.slots,
                                   .capacity = part.capacity,
                                   .ancestor = part.ancestor,
                                   .priority = next.claim.priority,
                                   .since = hold.since,
                                   .fence = hold.fences[at] == at_creation ? 0 : hold.fences[at],
                                   .who = claim.who},
                        .ttl = ttl};
      there.push_back(created(hold.keys[at], hold.created[at]));
      writes.push_back(put(hold.keys[at], encode(value, now), got.id));
      if (writes.size() < kOpsAtOnce && &part != &claim.parts.back()) continue;
      all.push_back(transaction(std::exchange(there, {}), std::exchange(writes, {})));
    }
    send_bundled(ask, together(std::move(all)), now_on,
                 handle(ask, [this, ask, next, ttl](const Txn& outcome, Call) {
                   if (all_held(outcome.response)) return granted(ask, outcome.response, next, ttl);
                   forget(*ask);
                   ask->reply({.verdict = Verdict::lost});
                 }));
  });
}

// A key and when it was made are this owner's alone: nothing of anybody else can be meant.
void Store::release(const Claim& claim, Call call, Reply reply) {
  const auto ask = make_ask(claim, false, call, std::move(reply));
  lane_.drop(claim.owner);
  give_back(ask, call);
}

void Store::give_back(const AskPtr& ask, Call call) {
  const auto& claim = ask->claim;
  watcher_.unwatch(claim.owner);
  if (book_.take_doubt(claim.owner) || ask->in_doubt) {
    return recall(ask, call, [this, ask](const wire::TxnResponse& response, Call now_on) {
      release_found(ask, response, now_on);
    });
  }
  if (const auto wait = book_.wait(claim.owner, BootClock::now()))
    return release_wait(ask, *wait, call);
  const auto hold = book_.hold(claim.owner);
  if (!hold || !knows(*hold, claim) || ask->tidies) return find_and_release(ask, call);
  std::vector<wire::TxnRequest> each;
  for (const auto& part : claim.parts) {
    const auto at = index(*hold, part);
    each.push_back(
        transaction({created(hold->keys[at], hold->created[at])}, {erase(hold->keys[at])}));
  }
  send_bundled(ask, together(std::move(each)), call,
               handle(ask, [this, ask, hold](const Txn& outcome, Call) {
                 forget(*ask);
                 // The first copy of this very request may have done it.
                 const auto freed = count_erased(outcome.response);
                 const bool held =
                     freed == ask->claim.parts.size() ||
                     (outcome.repeated && freed == 0 && BootClock::now() < hold->expires);
                 ask->reply({.verdict = held ? Verdict::granted : Verdict::lost});
               }));
}

void Store::release_wait(const AskPtr& ask, const Wait& wait, Call call) {
  Ops ops;
  for (const auto& key : wait.keys)
    ops.push_back(only_if({created(key, wait.created)}, {erase(key)}));
  send_bundled(ask, transaction({}, std::move(ops)), call,
               handle(ask, [this, ask](const Txn& outcome, Call now_on) {
                 if (count_erased(outcome.response) == 0) return find_and_release(ask, now_on);
                 forget(*ask);
                 ask->reply({.verdict = Verdict::queued});
               }));
}

// Another client's; or not known to be there.
void Store::find_and_release(const AskPtr& ask, Call call) {
  send(ask, transaction({}, reads(ask->claim)), call,
       [this, ask](const wire::TxnResponse& response, Call now_on) {
         release_found(ask, response, now_on);
       });
}

void Store::release_found(const AskPtr& ask, const wire::TxnResponse& response, Call call) {
  const auto& claim = ask->claim;
  if (ask->tidies && !book_.is_last(ask->call)) return;  // it is asked for again
  const auto rows = read_rows(claim, response, true);
  Ops ops;
  std::size_t held = 0;
  for (const auto seat : {Seat::waits, Seat::holds}) {
    for (const auto& part : claim.parts) {
      const auto* entry = rows.find(part.resource, seat, claim.owner);
      if (entry == nullptr) continue;
      const auto same =
          ask->tidies ? written(entry->key, entry->written) : created(entry->key, entry->created);
      ops.push_back(only_if({same}, {erase(entry->key)}));
      if (seat == Seat::holds) ++held;
    }
  }
  if (ops.empty()) {
    forget(*ask);
    return ask->reply({.verdict = Verdict::lost});
  }
  send(ask, transaction({}, std::move(ops)), call,
       [this, ask, held](const wire::TxnResponse& done, Call) {
         forget(*ask);
         const auto freed = count_erased(done);
         const bool waited = held == 0 && freed > 0;
         const bool all = held == ask->claim.parts.size() && freed >= held;
         ask->reply({.verdict = all ? Verdict::granted : waited ? Verdict::queued : Verdict::lost});
       });
}

void Store::recall(const AskPtr& ask, Call call, Answered then) {
  ask->in_doubt = true;
  const auto done = [ask, then = std::move(then)](const wire::TxnResponse& response, Call now_on) {
    ask->in_doubt = false;
    then(response, now_on);
  };
  // Somebody else of this client has done it meanwhile.
  if (ask->sent_under < recalled_) return send(ask, transaction({}, reads(ask->claim)), call, done);
  leases_.for_holder(kStragglers, call, [this, ask, done](const Leases::Got& got, Call now_on) {
    if (got.failure) return failed(ask, *got.failure, now_on);
    ask->recalls_lease = got.id;
    Ops ops{put(recall_key_, "", got.id)};
    for (auto& op : reads(ask->claim)) ops.push_back(std::move(op));
    send(ask, transaction({}, std::move(ops)), now_on, done);
  });
}

void Store::forget(const Ask& ask) {
  if (ask.tidies && !book_.is_last(ask.call)) return;
  book_.erase(ask.claim.owner);
  chairs_.free(ask.claim.owner);
}

namespace {

// Reads a range page by page, as it was at one revision.
class Pages : public std::enable_shared_from_this<Pages> {
 public:
  Pages(Rpc& rpc, Range range, Then<wire::TxnResponse> then)
      : rpc_(rpc), left_(std::move(range)), then_(std::move(then)) {}

  void read_next(Call call) {
    rpc_.txn(transaction({}, {read_first(left_, kPage, revision_)}), call,
             [self = shared_from_this()](const Outcome<wire::TxnResponse>& outcome, Call now_on) {
               self->take(outcome, now_on);
             });
  }

 private:
  static constexpr std::int64_t kPage = 2000;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

  void take(const Outcome<wire::TxnResponse>& outcome, Call call) {
    if (outcome.failure) return then_(outcome, call);
    bytes_ += outcome.response.ByteSizeLong();
    bool more = false;
    each_range(outcome.response, [&](const wire::RangeResponse& range) {
      more = range.more() && range.kvs_size() > 0;
      if (more) left_.begin = range.kvs(range.kvs_size() - 1).key() + '\0';
    });
    if (revision_ == 0) revision_ = outcome.response.header().revision();
    whole_.response.mutable_header()->set_revision(revision_);
    whole_.response.mutable_responses()->MergeFrom(outcome.response.responses());
    if (!more) return then_(whole_, call);
    if (bytes_ <= kMostBytes) return read_next(call);
    whole_.failure =
        Failure{Failure::Kind::refused,
                Error(Errc::refused, "there are more than " + std::to_string(kMostBytes >> 20U) +
                                         " MiB of locks; name a prefix")};
    then_(whole_, call);
  }

  Rpc& rpc_;
  Range left_;
  const Then<wire::TxnResponse> then_;
  std::int64_t revision_ = 0;
  std::size_t bytes_ = 0;
  Outcome<wire::TxnResponse> whole_;
};

}  // namespace

void Store::inspect(const Query& query, Call call, Report report) {
  call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
  const auto then = [this, everything = query.resources.empty(), report = std::move(report)](
                        const Txn& outcome, Call) {
    if (outcome.failure) return report({.resources = {}, .why = outcome.failure->error});
    try {
      Rows rows(keys_, sightings_, BootClock::now());
      if (everything) rows.pass_over_broken();
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
  };
  if (query.resources.empty()) {
    return std::make_shared<Pages>(rpc_, keys_.all(query.prefix), then)->read_next(call);
  }
  Ops ops;
  for (const auto& resource : query.resources) ops.push_back(read(keys_.row(resource)));
  rpc_.txn(transaction({}, std::move(ops)), call, then);
}

// On the background thread. Where several are in the way, whoever waits looks for itself.
void Store::check(const Owner& owner, const Target& target) {
  if (!target.range.end.empty()) return sink_(owner);
  const Call call{.deadline = BootClock::now() + traits_.call_timeout};
  bundler_.txn({}, transaction({created(target.range.begin, target.created)}, {}), call,
               [this, owner](const Txn& outcome, Call) {
                 if (outcome.failure || outcome.response.succeeded()) return;
                 watcher_.unwatch(owner);
                 sink_(owner);
               });
}

void Store::tick() {
  leases_.tick();
  const auto now = BootClock::now();
  const auto due = book_.due(now, kSilence);
  const Call call{.deadline = now + traits_.call_timeout};
  for (const auto& hold : due.holds) {
    Ops ops;
    // Unless somebody else, who adopted it, has renewed it.
    for (const auto& key : hold.keys)
      ops.push_back(only_if({written(key, hold.written)}, {erase(key)}));
    rpc_.txn(transaction({}, std::move(ops)), call, [](const Txn&, Call) {});
    chairs_.free(hold.claim.owner);
  }
  for (const auto& one : due.silent) tidy(one, false);
  for (const auto& one : due.in_doubt) tidy(one, true);
}

void Store::tidy(const Book::Due::Tidy& what, bool in_doubt) {
  Call call{.deadline = TimePoint::max()};
  const auto& claim = what.claim;
  const auto ask = make_ask(claim, false, call, [this, claim](const Answer& answer) {
    if (answer.verdict == Verdict::unknown) book_.doubt(claim, BootClock::now() + kHeartbeat);
  });
  ask->call = what.call;
  ask->tidies = true;
  ask->in_doubt = in_doubt;
  give_back(ask, call);
}

}  // namespace interlock::etcd
