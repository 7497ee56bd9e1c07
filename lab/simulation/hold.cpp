#include "hold.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

using interlock::LeaseState;
using interlock::Verdict;
using interlock::core::Succession;

namespace {

constexpr Duration kFirstPause = 20ms;
constexpr Duration kLongestPause = 250ms;

Duration question_pause(Duration ttl) { return std::clamp<Duration>(ttl / 12, kFirstPause, 1s); }

}  // namespace

Hold::Hold(Client& client, Checks& checks, const Pursuit& pursuit, Time asked)
    : client_(client),
      checks_(checks),
      granted_(client.world().now()),
      held_(*pursuit.claim(), [&client] { return client.new_owner(); }),
      machine_({.ttl = pursuit.claim()->ttl,
                .drift = [&client](Duration ttl) { return client.traits().drift(ttl); },
                .call_timeout = client.traits().call_timeout},
               pursuit.machine().sent(), client.now()) {
  checks_.fences(held_.claim(), pursuit.machine().fences(), asked);
  believe(held_.claim());
}

void Hold::begin() { schedule(machine_.next_tick()); }

void Hold::believe(const Claim& claim) {
  if (belief_ != 0) checks_.ends(belief_);
  belief_ = checks_.believes(claim, until());
}

void Hold::believe_on() {
  if (belief_ != 0) checks_.believes_until(belief_, until());
}

void Hold::schedule(TimePoint when) {
  if (when >= ticks_at_) return;
  ticks_at_ = when;
  client_.at(when, [self = shared_from_this()] {
    self->ticks_at_ = TimePoint::max();
    self->due();
  });
}

void Hold::due() {
  if (released_) return;
  const auto now = client_.now();
  auto step = machine_.tick(now);
  if (!step.lose && held_.phase() == Succession::Phase::settling) step = machine_.hurry(now);
  perform(step);
}

void Hold::perform(const LeaseMachine::Step& step) {
  if (released_) return;
  const bool settling = held_.phase() == Succession::Phase::settling;
  auto next = machine_.next_tick();
  if (settling) next = std::min(next, client_.now() + question_pause(machine_.ttl()));
  schedule(next);
  if (step.renew) {
    if (settling) return send_question(step.call_deadline);
    return send_renewal(step.call_deadline);
  }
  if (!step.lose) return believe_on();
  if (step.forget || held_.successor()) forget();
  checks_.ends(std::exchange(belief_, 0));
  checks_.lost(held_.claim(), granted_, client_.number(), machine_.reason());
}

void Hold::send_renewal(TimePoint deadline) {
  const auto asked = claim();
  const auto sent = client_.now();
  client_.renew(
      asked, deadline,
      [self = shared_from_this(), asked, generation = generation_, sent](const Answer& answer) {
        if (self->generation_ != generation || self->released_) return;
        const auto now = self->client_.now();
        if (answer.verdict == Verdict::lost && self->held_.doubt()) {
          if (self->held_.phase() == Succession::Phase::asking) return;
          return self->perform(self->machine_.hurry(now));
        }
        self->perform(self->machine_.renewed(now, sent, asked->ttl, answer.verdict));
      });
}

void Hold::send_question(TimePoint deadline) {
  const auto asked = std::make_shared<const Claim>(*held_.successor());
  const auto sent = client_.now();
  client_.acquire(asked, false, deadline,
                  [self = shared_from_this(), asked, sent](const Answer& answer) {
                    if (self->released_) return;
                    auto& machine = self->machine_;
                    const auto now = self->client_.now();
                    const auto found = self->held_.answered(asked->owner, answer.verdict);
                    if (found == Succession::Found::lost) return self->perform(machine.taken(now));
                    if (found == Succession::Found::nothing) return self->perform({});
                    ++self->generation_;
                    self->granted_ = self->client_.world().now();
                    auto step = machine.renewed(now, sent, asked->ttl, Verdict::granted);
                    if (!step.lose && self->held_.phase() == Succession::Phase::settling)
                      step = machine.hurry(now);
                    self->perform(step);
                  });
}

void Hold::extend(Duration ttl) {
  if (!held() || held_.phase() != Succession::Phase::settled) return;
  machine_.set_ttl(ttl);
  held_.edit().ttl = ttl;
  ++generation_;
  send_renewal(std::min(machine_.valid_until(), client_.call_deadline()));
}

void Hold::change(Mode to, Duration limit, Then then) {
  if (!held() || held_.phase() != Succession::Phase::settled) return then();
  Claim next = held_.claim();
  for (auto& part : next.parts) part.mode = to;
  if (next.parts == held_.claim().parts) return then();
  const auto left = machine_.valid_until() - client_.now();
  held_.begin(std::move(next), left + 2 * client_.traits().drift(left));
  const auto asks = std::make_shared<const Claim>(*held_.successor());
  // Its user believes in the weaker of both until the answer is there.
  if (to == Mode::shared) {
    auto weaker = held_.claim();
    weaker.parts = asks->parts;
    believe(weaker);
  }
  const auto asked = client_.world().now();
  std::make_shared<Pursuit>(
      client_, asks, plan_of(client_, *asks, limit),
      [self = shared_from_this(), asked, then = std::move(then)](Pursuit& pursuit) {
        self->changed(pursuit, asked);
        then();
      })
      ->start();
}

void Hold::changed(Pursuit& pursuit, Time asked) {
  const auto& result = pursuit.machine();
  const auto now = client_.now();
  if (released_ || machine_.state(now) != LeaseState::held) return;
  if (result.outcome() == interlock::Outcome::granted) {
    held_.granted();
    granted_ = client_.world().now();
    ++generation_;
    const auto step = machine_.renewed(now, result.sent(), pursuit.claim()->ttl, Verdict::granted);
    if (held_.claim().parts.front().mode == Mode::exclusive)
      checks_.fences(held_.claim(), result.fences(), asked);
    believe(held_.claim());
    return perform(step);
  }
  if (result.outcome() == interlock::Outcome::failed && result.why() &&
      result.why()->errc() == interlock::Errc::lost)
    return perform(machine_.taken(now));
  if (result.refused_for_certain()) return held_.refused();
  held_.give_up();
  perform({});
  due();
}

void Hold::forget() {
  client_.forget(claim());
  if (held_.successor()) client_.forget(std::make_shared<const Claim>(*held_.successor()));
}

void Hold::release(bool again, Then then) {
  if (released_) return then();
  const auto step = machine_.tick(client_.now());
  if (step.lose) perform(step);
  was_held_ = held();
  released_ = true;
  if (belief_ != 0) checks_.ends(std::exchange(belief_, 0));
  give_back(client_.call_deadline(), kFirstPause, again, false, std::move(then));
}

void Hold::give_back(TimePoint deadline, Duration pause, bool again, bool maybe_done, Then then) {
  const auto take = [self = shared_from_this(), deadline, pause, again, maybe_done,
                     then = std::move(then)](const Answer& answer) {
    const bool failed = answer.verdict == Verdict::unknown;
    if (failed && again && self->client_.now() + pause < deadline) {
      return self->client_.at(self->client_.now() + pause, [self, deadline, pause, again, then] {
        self->give_back(deadline, std::min(2 * pause, kLongestPause), again, true, then);
      });
    }
    self->given_back(answer, maybe_done, self->was_held_);
    then();
  };
  client_.release(
      claim(), deadline, [self = shared_from_this(), deadline, take](const Answer& answer) {
        auto& held = self->held_;
        const bool was_refused = held.phase() == Succession::Phase::settled;
        if (!held.successor() || answer.verdict == Verdict::unknown ||
            (was_refused && answer.verdict == Verdict::granted))
          return take(answer);
        self->client_.release(
            std::make_shared<const Claim>(*held.successor()), deadline,
            [take, answer](const Answer& other) {
              take(answer.verdict == Verdict::granted && other.verdict != Verdict::unknown ? answer
                                                                                           : other);
            });
      });
}

void Hold::given_back(const Answer& answer, bool maybe_done, bool was_held) {
  if (answer.verdict == Verdict::unknown) return forget();
  if (answer.verdict == Verdict::granted || maybe_done || !was_held) return;
  checks_.lost(held_.claim(), granted_, client_.number(),
               "it was not held any more when it was released");
}

}  // namespace simulation
