#include "backends/redis/redlock_calls.hpp"

#include <algorithm>
#include <utility>

#include "interlock/duration.hpp"

namespace interlock::redis {

using Said = Vote::Said;
using Way = Steps::Way;

RedlockCalls::RedlockCalls(RedlockNodes nodes, Duration call_timeout)
    : nodes_(std::move(nodes)),
      call_timeout_(call_timeout),
      waiters_(nodes_.majority()),
      mending_(nodes_),
      debts_(nodes_.size()) {}

template <class Machine>
RedlockCalls::Id RedlockCalls::add(const ClaimPtr& claim, Call how, Machine machine) {
  const auto id = ++last_id_;
  calls_.emplace(id, OpenCall{.claim = claim, .how = how, .machine = std::move(machine)});
  by_owner_.emplace(claim->owner, id);  // last, as there may be no memory: it names open calls only
  return id;
}

RedlockCalls::Id RedlockCalls::acquire(const ClaimPtr& claim, bool queue, Call how, Now now,
                                       Actions& actions) {
  how.deadline = std::min(how.deadline, later(now.time, call_timeout_));
  close(claim->owner);
  RedlockAcquisition machine(nodes_, waiters_, claim, queue, attempts_);
  attempts_ += RedlockAcquisition::kMostRounds;
  const auto id = add(claim, how, std::move(machine));
  begin(id, now, actions);
  return id;
}

RedlockCalls::Id RedlockCalls::renew(const ClaimPtr& claim, Call how, Now now, Actions& actions) {
  const RedlockRenewal machine(nodes_, claim);
  const bool released = has_open_release(claim->owner);
  const auto id = add(claim, how, machine);
  calls_.at(id).closed = released;
  Steps steps;
  machine.begin(steps);
  perform(id, std::move(steps), now, actions);
  return id;
}

RedlockCalls::Id RedlockCalls::release(const ClaimPtr& claim, Call how, Now now, Actions& actions) {
  waiters_.forget(claim->owner);
  close(claim->owner);
  how.deadline = std::min(how.deadline, later(now.time, call_timeout_));
  const RedlockRelease machine(nodes_, claim);
  const auto id = add(claim, how, machine);
  Steps steps;
  machine.begin(steps);
  perform(id, std::move(steps), now, actions);
  return id;
}

void RedlockCalls::close(const Owner& owner) {
  const auto [begin, end] = by_owner_.equal_range(owner);
  std::for_each(begin, end, [this](const auto& each) { calls_.at(each.second).closed = true; });
}

bool RedlockCalls::has_open_release(const Owner& owner) const {
  const auto [begin, end] = by_owner_.equal_range(owner);
  return std::any_of(begin, end, [this](const auto& each) {
    return std::holds_alternative<RedlockRelease>(calls_.at(each.second).machine);
  });
}

void RedlockCalls::begin(Id id, Now now, Actions& actions) {
  auto& call = calls_.at(id);
  Steps steps;
  auto& machine = std::get<RedlockAcquisition>(call.machine);
  if (call.closed) {
    machine.refuse(steps);
  } else {
    machine.begin(now.clock, steps);
  }
  perform(id, std::move(steps), now, actions);
}

TimePoint RedlockCalls::deadline_of(const OpenCall& call, Now now) const {
  if (std::holds_alternative<RedlockRelease>(call.machine)) return call.how.deadline;
  const auto patience = std::min(std::max(call.claim->ttl / 4, kShortestPatience), call_timeout_);
  return std::min(call.how.deadline, now.time + patience);
}

void RedlockCalls::perform(Id id, Steps steps, Now now, Actions& actions) {
  std::vector<Steps::Send> questions;
  for (auto& send : steps.sends) {
    if (send.way == Way::ask) {
      questions.push_back(std::move(send));
      continue;
    }
    const auto& call = calls_.at(id);
    if (send.until_closed && call.closed) continue;
    const auto until = later(now.time, call.claim->ttl);
    if (send.way == Way::tell) {
      post({.call = id, .kind = send.message.kind}, send.node, std::move(send.message), until,
           false, actions);
    } else {
      insist(send.node,
             {.call = id,
              .message = std::move(send.message),
              .until = until,
              .until_closed = send.until_closed},
             now, actions);
    }
  }
  if (!questions.empty()) ask(id, std::move(questions), now, actions);
  if (id == kMender) return;
  if (steps.mend_aside) mend(kMender, now, actions);
  if (steps.mend) return mend(id, now, actions);
  auto& call = calls_.at(id);
  if (steps.stop_waiting && !call.closed) waiters_.forget(call.claim->owner);
  bool wake = false;
  if (steps.waits && !call.closed) {
    const auto& [ticket, free, attempt] = *steps.waits;
    wake = waiters_.wait(call.claim->owner, ticket, free, attempt);
    actions.listens.push_back({.owner = call.claim->owner, .attempt = attempt});
  }
  if (steps.answer) {
    call.answered = true;
    actions.answers.emplace_back(id, std::move(*steps.answer));
  }
  if (wake) actions.wakes.push_back(call.claim->owner);
  let_go(id);
}

void RedlockCalls::ask(Id id, std::vector<Steps::Send> sends, Now now, Actions& actions) {
  const bool mends = id == kMender;
  const auto* call = mends ? nullptr : &calls_.at(id);
  const auto deadline = mends ? now.time + RedlockMending::kPatience : deadline_of(*call, now);
  const bool caller_waits = !mends && call->how.caller_waits;
  const auto number = ++last_id_;
  auto& question = questions_[number];
  question = {
      .deadline = deadline, .within = deadline - now.time, .letters = {}, .left = sends.size()};
  deadlines_.emplace(deadline, number);
  for (auto& send : sends) {
    question.letters.emplace_back(last_id_ + 1, send.node);
    const Letter letter{.call = id,
                        .question = number,
                        .kind = send.message.kind,
                        .attempt = send.message.attempt,
                        .until_closed = send.message.kind == Message::Kind::acquire ||
                                        send.message.kind == Message::Kind::confirm};
    post(letter, send.node, std::move(send.message), deadline, caller_waits, actions);
  }
}

void RedlockCalls::post(Letter letter, std::size_t node, Message message, TimePoint deadline,
                        bool caller_waits, Actions& actions) {
  const auto id = ++last_id_;
  if (letter.call != kMender) ++calls_.at(letter.call).kept;
  letters_.emplace(id, std::move(letter));
  actions.sends.push_back({.letter = id,
                           .node = node,
                           .message = std::move(message),
                           .deadline = deadline,
                           .caller_waits = caller_waits});
}

void RedlockCalls::insist(std::size_t node, RedlockDebts::Debt debt, Now now, Actions& actions) {
  if (debt.until <= now.time || (debt.until_closed && is_closed(debt.call))) return;
  auto message = debt.message;
  const auto until = debt.until;
  Letter letter{.call = debt.call, .kind = message.kind, .until_closed = debt.until_closed};
  letter.debt = std::move(debt);
  post(std::move(letter), node, std::move(message), until, false, actions);
}

bool RedlockCalls::is_closed(Id id) const {
  const auto call = calls_.find(id);
  return call != calls_.end() && call->second.closed;
}

bool RedlockCalls::may_send(Id letter) const {
  const auto found = letters_.find(letter);
  if (found == letters_.end()) return false;
  return !found->second.until_closed || !is_closed(found->second.call);
}

void RedlockCalls::heard(Id id, std::size_t node, Vote vote, Now now, Actions& actions) {
  const bool replied = vote.replied;
  const auto found = letters_.find(id);
  // Also a late answer and an error are signs of life.
  if (replied) nodes_.silent &= ~bit(node);
  if (found == letters_.end()) return;  // too late
  const auto letter = std::move(found->second);
  letters_.erase(found);
  if (letter.question != 0) {
    if (!replied) nodes_.silent |= bit(node);
    auto& question = questions_.at(letter.question);
    if (--question.left == 0) {
      deadlines_.erase({question.deadline, letter.question});
      questions_.erase(letter.question);
    }
  }
  take(letter, node, std::move(vote), now, actions);
}

void RedlockCalls::take(const Letter& letter, std::size_t node, Vote vote, Now now,
                        Actions& actions) {
  if (letter.debt) {
    if (vote.said == Said::failed) {
      auto& call = calls_.at(letter.call);
      ++call.kept;
      debts_[node].failed(*letter.debt, now.time);
    } else {
      for (auto& debt : debts_[node].done()) {
        const auto call = debt.call;
        insist(node, std::move(debt), now, actions);
        --calls_.at(call).kept;
        let_go(call);
      }
    }
  } else if (letter.call == kMender) {
    Steps steps;
    mending_.heard(node, vote, now.time, steps);
    perform(kMender, std::move(steps), now, actions);
    if (!mending_.resting()) return;
    std::vector<Id> waiting;
    for (const auto& [id, call] : calls_) {
      if (call.mending) waiting.push_back(id);
    }
    std::sort(waiting.begin(), waiting.end());
    for (const auto id : waiting) mended(id, now, actions);
    return;
  } else if (letter.question != 0) {
    Steps steps;
    auto& machine = calls_.at(letter.call).machine;
    if (auto* const acquisition = std::get_if<RedlockAcquisition>(&machine)) {
      if (letter.kind == Message::Kind::acquire) {
        acquisition->first(letter.attempt, node, std::move(vote), steps);
      } else {
        acquisition->second(node, std::move(vote), steps);
      }
    } else if (auto* const renewal = std::get_if<RedlockRenewal>(&machine)) {
      renewal->heard(node, std::move(vote), steps);
    } else {
      std::get<RedlockRelease>(machine).heard(node, std::move(vote), steps);
    }
    perform(letter.call, std::move(steps), now, actions);
  }
  --calls_.at(letter.call).kept;
  let_go(letter.call);
}

void RedlockCalls::mend(Id id, Now now, Actions& actions) {
  Steps steps;
  const bool under_way = mending_.mend(now.time, steps);
  perform(kMender, std::move(steps), now, actions);
  if (id == kMender) return;
  if (!under_way) return mended(id, now, actions);
  calls_.at(id).mending = true;
}

void RedlockCalls::mended(Id id, Now now, Actions& actions) {
  calls_.at(id).mending = false;
  begin(id, now, actions);
}

void RedlockCalls::turn(const Owner& owner, std::size_t node, Actions& actions) {
  if (waiters_.turn(owner, node)) actions.wakes.push_back(owner);
}

void RedlockCalls::listens(const Actions::Listen& listen, std::size_t node, bool late,
                           Actions& actions) {
  if (waiters_.listens(listen.owner, listen.attempt, node, late))
    actions.wakes.push_back(listen.owner);
}

// A question ends after its last letter: what finds no memory is left for the next tick.
void RedlockCalls::expire(Id id, Now now, Actions& actions) {
  const auto question = questions_.at(id);
  const auto why = question.within > Duration::zero()
                       ? "no answer within " + format_duration(question.within)
                       : std::string("no time was left to ask it");
  for (const auto& [letter, node] : question.letters) {
    if (!letters_.contains(letter)) continue;
    heard(letter, node,
          Vote::failed({Errc::unreachable,
                        why,
                        {.resource = {}, .node = nodes_.names[node], .maybe_held = true}},
                       true),
          now, actions);
  }
  deadlines_.erase({question.deadline, id});
  questions_.erase(id);
}

void RedlockCalls::tick(Now now, Actions& actions) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.time)
    expire(deadlines_.begin()->second, now, actions);
  for (std::size_t node = 0; node < debts_.size(); ++node) {
    auto& debts = debts_[node];
    if (now.time < debts.next_due()) continue;
    std::vector<Id> dropped;
    debts.drop([&](const RedlockDebts::Debt& debt) {
      const bool over = debt.until <= now.time || (debt.until_closed && is_closed(debt.call));
      if (over) dropped.push_back(debt.call);
      return over;
    });
    if (auto debt = debts.due(now.time)) {
      dropped.push_back(debt->call);
      insist(node, std::move(*debt), now, actions);
    }
    for (const auto call : dropped) {
      --calls_.at(call).kept;
      let_go(call);
    }
  }
}

TimePoint RedlockCalls::next_tick() const noexcept {
  auto next = deadlines_.empty() ? TimePoint::max() : deadlines_.begin()->first;
  for (const auto& debts : debts_) next = std::min(next, debts.next_due());
  return next;
}

// Nothing of it can come any more.
void RedlockCalls::let_go(Id id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const auto& call = found->second;
  if (!call.answered || call.kept > 0 || call.mending) return;
  const auto [begin, end] = by_owner_.equal_range(call.claim->owner);
  by_owner_.erase(std::find_if(begin, end, [id](const auto& each) { return each.second == id; }));
  calls_.erase(found);
}

}  // namespace interlock::redis
