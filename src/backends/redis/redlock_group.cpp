#include "backends/redis/redlock_group.hpp"

#include <numeric>
#include <utility>

#include "backends/redis/script_texts.hpp"
#include "interlock/duration.hpp"

namespace interlock::redis {

namespace {

constexpr const char* kNoPersistence =
    "the server has no append-only file: when it is started again, it starts empty or with an old "
    "state, and does not count until all leases that it may have known have ended";

}  // namespace

const RedlockScripts& RedlockScripts::all() {
  static const auto* const scripts = [] {
    // The rules are those of a single server; only what they are part of differs.
    const auto with_claim =
        std::string("local function claim()\n") + std::string(kAcquireLua) + "\nend\n";
    return new RedlockScripts{
        .acquire = make_script({kRedlockNodeLua, kRedlockBeginLua, kRedlockAcquireSimpleLua,
                                kRowsLua, kRedlockRowsLua, with_claim, kRedlockAcquireLua}),
        .confirm = make_script({kRowsLua, kRedlockRowsLua, kRedlockConfirmLua}),
        .yield = make_script({kRowsLua, kRedlockRowsLua, kRedlockYieldLua}),
        .renew = make_script({kRowsLua, kRedlockRowsLua, kRedlockRenewLua}),
        .heal = make_script({kRowsLua, kRedlockRowsLua, kRedlockHealLua}),
        .release = make_script({"local covers = true\n", kReleaseSimpleLua, kRowsLua,
                                kRedlockRowsLua, kRedlockReleaseLua, kReleaseLua}),
        .mend = make_script({kRedlockNodeLua, kRedlockMendLua}),
    };
  }();
  return *scripts;
}

std::vector<const Script*> RedlockScripts::list() const {
  return {&acquire, &confirm, &yield, &renew, &heal, &release, &mend, &Scripts::all().inspect};
}

RedlockNode::RedlockNode(Loop& loop, const KeyNames& names, const std::string& name,
                         const Endpoint& endpoint, const Access& access, WakeSink wake,
                         const WarnSink& warn)
    : OneServer(loop,
                {.fence = "{" + names.prefix() + "}:node",
                 .channel = fresh_channel(names),
                 .in_full = true},
                name, endpoint, access, std::move(wake),
                {.scripts = RedlockScripts::all().list(), .stamps_run = true}) {
  server().on_facts([warn, name](const Server::Facts& facts) {
    auto risks = risks_of(facts, false);
    if (const auto aof = facts.find("aof_enabled"); aof != facts.end() && aof->second == "0")
      risks.emplace_back(kNoPersistence);
    warn_of(risks, name, warn);
  });
}

/// One question to some nodes.
class RedlockGroup::Poll final : public core::Keeper::Task,
                                 public std::enable_shared_from_this<Poll> {
 public:
  Poll(RedlockGroup& group, const std::vector<std::size_t>& nodes, Duration within, Each each)
      : group_(group),
        asked_(group.size(), false),
        left_(nodes.size()),
        within_(within),
        each_(std::move(each)) {
    for (const auto node : nodes) asked_[node] = true;
  }

  void told(std::size_t node, Outcome outcome) {
    {
      const std::lock_guard lock(mutex_);
      // Also a late answer is a sign of life.
      if (outcome.reply || asked_[node]) group_.node(node).set_silent(!outcome.reply);
      if (!asked_[node]) return;  // too late
      asked_[node] = false;
      if (--left_ == 0) group_.keeper().cancel(*this);
    }
    each_(node, std::move(outcome));
  }

  void due(TimePoint) override {
    for (std::size_t node = 0; node < group_.size(); ++node) {
      told(node, {.reply = {},
                  .failure = Error(
                      Errc::unreachable, "no answer within " + format_duration(within_),
                      {.resource = {}, .node = group_.node(node).name(), .maybe_held = true})});
    }
  }

 private:
  RedlockGroup& group_;
  std::mutex mutex_;
  std::vector<bool> asked_;
  std::size_t left_;
  const Duration within_;
  const Each each_;
};

/// What a node has not done yet, as it could not be reached. While it is away, it is asked for one of
/// these only; once it has answered, for all the others at once.
class RedlockGroup::Debts final : public core::Keeper::Task,
                                  public std::enable_shared_from_this<Debts> {
 public:
  struct Debt {
    const Script* script;
    Words words;
    TimePoint until;
    GatePtr gate;
  };
  Debts(RedlockGroup& group, std::size_t node) : group_(group), node_(node) {}

  void ask(Debt debt) {
    send(std::move(debt), [self = shared_from_this()](bool done, Debt asked) {
      if (!done) self->add(std::move(asked));
    });
  }

  void due(TimePoint now) override {
    std::optional<Debt> first;
    {
      const std::lock_guard lock(mutex_);
      scheduled_ = false;
      std::erase_if(debts_, [now](const Debt& debt) { return debt.until <= now; });
      if (debts_.empty()) return;
      first = std::move(debts_.back());
      debts_.pop_back();
    }
    send(std::move(*first), [self = shared_from_this()](bool done, Debt asked) {
      if (!done) return self->add(std::move(asked));
      std::vector<Debt> rest;
      {
        const std::lock_guard lock(self->mutex_);
        rest.swap(self->debts_);
      }
      for (auto& debt : rest) self->ask(std::move(debt));
    });
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(200);

  template <class Then>
  void send(Debt debt, Then then) {
    const auto go = [&] {
      const Call how{.deadline = debt.until, .caller_waits = false};
      group_.run(node_, *debt.script, debt.words, how, debt.gate,
                 [debt, then](const Outcome& outcome) {
                   then(outcome.reply && !is_error(*outcome.reply), debt);
                 });
    };
    if (!debt.gate) return go();
    if (!debt.gate->unless_closed(go)) then(true, debt);
  }

  void add(Debt debt) {
    {
      const std::lock_guard lock(mutex_);
      debts_.push_back(std::move(debt));
      if (std::exchange(scheduled_, true)) return;
    }
    group_.keeper().schedule(shared_from_this(), BootClock::now() + kPause);
  }

  RedlockGroup& group_;
  const std::size_t node_;
  std::mutex mutex_;
  std::vector<Debt> debts_;
  bool scheduled_ = false;
};

RedlockGroup::RedlockGroup(const std::string& prefix, const std::vector<Member>& members,
                           const std::function<void(std::size_t, const Owner&)>& wake,
                           const WarnSink& warn)
    : names_(prefix), keeper_(system_clock()) {
  for (const auto& member : members) {
    nodes_.push_back(std::make_unique<RedlockNode>(
        loop_, names_, member.name, member.endpoint, member.access,
        [wake, i = nodes_.size()](const Owner& owner) { wake(i, owner); }, warn));
    debts_.push_back(std::make_shared<Debts>(*this, debts_.size()));
  }
}

void RedlockGroup::ask(const std::vector<std::size_t>& nodes, const Script& script,
                       const MakeWords& words, Call how, const GatePtr& gate, Each each) {
  const auto poll =
      std::make_shared<Poll>(*this, nodes, how.deadline - BootClock::now(), std::move(each));
  keeper_.schedule(poll, how.deadline);
  for (const auto node : nodes) {
    run(node, script, words(node), how, gate,
        [poll, node](Outcome outcome) { poll->told(node, std::move(outcome)); });
  }
}

void RedlockGroup::tell(std::size_t node, const Script& script, Words words, Duration within,
                        const GatePtr& gate) {
  const Call how{.deadline = BootClock::now() + within, .caller_waits = false};
  const auto send = [&] { run(node, script, std::move(words), how, gate, [](const Outcome&) {}); };
  if (gate) {
    gate->unless_closed(send);
  } else {
    send();
  }
}

void RedlockGroup::insist(std::size_t node, const Script& script, Words words, Duration within,
                          const GatePtr& gate) {
  debts_[node]->ask({.script = &script,
                     .words = std::move(words),
                     .until = BootClock::now() + within,
                     .gate = gate});
}

// Not Server::run: a script that the server does not know is sent again in full, and so comes after
// what was sent meanwhile. If that was a release, it must not.
void RedlockGroup::run(std::size_t node, const Script& script, Words words, Call how,
                       const GatePtr& gate, Server::Then then) {
  const auto send = [&server = nodes_[node]->server(), how,
                     stamped = &script == &RedlockScripts::all().acquire](std::string bytes,
                                                                          Server::Then done) {
    if (stamped) return server.send_stamped(std::move(bytes), how, std::move(done));
    server.send(std::move(bytes), how, std::move(done));
  };
  auto bytes = call(script, words, false);
  send(std::move(bytes),
       [send, &script, words = std::move(words), gate, then = std::move(then)](Outcome outcome) {
         if (!is_unknown_script(outcome)) return then(std::move(outcome));
         const auto again = [&] { send(call(script, words, true), then); };
         if (!gate) return again();
         if (gate->unless_closed(again)) return;
         then({.reply = {}, .failure = Error(Errc::unreachable, "released meanwhile")});
       });
}

namespace {

Claim named(Claim claim) {
  claim.who = std::make_shared<const Who>();
  return claim;
}

}  // namespace

Words RedlockGroup::words(std::size_t node, const Claim& claim, bool queue,
                          const std::string& extra) const {
  if (!claim.who) return this->words(node, named(claim), queue, extra);
  auto words = words_of(claim, queue, names_, nodes_[node]->style());
  words.add(extra);
  return words;
}

Words RedlockGroup::words_to_release(std::size_t node, const Claim& claim) const {
  if (!claim.who) return words_to_release(node, named(claim));
  return release_words(claim, names_, nodes_[node]->style());
}

std::vector<std::size_t> RedlockGroup::everybody() const {
  std::vector<std::size_t> all(nodes_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace interlock::redis
