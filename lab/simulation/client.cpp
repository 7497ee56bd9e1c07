#include "client.hpp"

#include <algorithm>
#include <utility>

#include "interlock/options.hpp"
#include "trace.hpp"

namespace simulation {

namespace {

interlock::redis::RedlockNodes names(std::size_t nodes) {
  interlock::redis::RedlockNodes named{.names = {}, .where = "redlock://simulated"};
  for (std::size_t node = 0; node < nodes; ++node)
    named.names.push_back("node " + std::to_string(node));
  return named;
}

}  // namespace

Client::Client(World& world, std::size_t number, OwnClock clock,
               std::vector<std::unique_ptr<Host>>& hosts, const Path::Weather& weather,
               const interlock::Traits& traits, std::uint64_t seed)
    : world_(world),
      number_(number),
      clock_(clock),
      traits_(traits),
      random_(seed, 100 + number),
      calls_(names(hosts.size()), traits.call_timeout) {
  for (std::size_t node = 0; node < hosts.size(); ++node) {
    wires_.push_back(std::make_unique<Wire>(world, weather, *hosts[node], *this, number, node,
                                            traits.call_timeout));
  }
}

void Client::run(std::function<void()> what) {
  if (crashed_) return;
  if (stopped_) return backlog_.push_back(std::move(what));
  what();
}

void Client::at(TimePoint when, std::function<void()> what) {
  if (when == TimePoint::max()) return;
  world_.at(this->when(when), [this, what = std::move(what)]() mutable { run(std::move(what)); });
}

void Client::go_on() {
  if (!std::exchange(stopped_, false)) return;
  for (auto& each : std::exchange(backlog_, {})) run(std::move(each));
}

void Client::crash() {
  crashed_ = true;
  for (const auto& wire : wires_) wire->close();
}

RedlockCalls::Now Client::times() const {
  return {.time = now(),
          .clock = static_cast<std::uint64_t>(now().time_since_epoch().count()) / 1000};
}

template <class Tell>
void Client::tell(Tell tell) {
  Actions actions;
  tell(actions);
  check_heals(actions);
  for (auto& send : actions.sends) {
    auto& wire = *wires_[send.node];
    wire.send(std::move(send));
  }
  if (const auto next = calls_.next_tick(); next < ticks_at_) {
    ticks_at_ = next;
    at(next, [this] { tick(); });
  }
  for (const auto& each : actions.listens) listen_all(each);
  for (auto& [call, answer] : actions.answers) {
    const auto reply = replies_.extract(call);
    reply.mapped()(answer);
  }
  for (const auto& owner : actions.wakes) wake(owner);
}

// Renewing never creates.
void Client::check_heals(const Actions& actions) {
  for (const auto& [call, answer] : actions.answers) {
    const auto renewal = renewals_.extract(call);
    if (renewal && answer.verdict == interlock::Verdict::granted)
      confirmed_.insert(renewal.mapped());
  }
  for (const auto& send : actions.sends) {
    if (send.message.kind != Message::Kind::heal) continue;
    if (confirmed_.contains(send.message.claim->owner)) continue;
    world_.violate("creates", "node " + std::to_string(send.node) + " is told to " +
                                  describe(send.message) + ", though no majority confirmed it");
  }
}

void Client::tick() {
  ticks_at_ = TimePoint::max();
  tell([this](Actions& actions) { calls_.tick(times(), actions); });
}

void Client::acquire(const ClaimPtr& claim, bool queue, TimePoint deadline, Reply reply) {
  tell([&](Actions& actions) {
    const auto id = calls_.acquire(claim, queue, {.deadline = deadline}, times(), actions);
    world_.trace([&] {
      return "client " + std::to_string(number_) + " call " + std::to_string(id) + " acquires " +
             describe(*claim);
    });
    replies_.emplace(id, [this, id, reply = std::move(reply)](const Answer& answer) {
      world_.trace([&] {
        return "client " + std::to_string(number_) + " call " + std::to_string(id) + " is told " +
               describe(answer);
      });
      reply(answer);
    });
  });
}

void Client::renew(const ClaimPtr& claim, TimePoint deadline, Reply reply) {
  tell([&](Actions& actions) {
    const auto id = calls_.renew(claim, {.deadline = deadline}, times(), actions);
    renewals_.emplace(id, claim->owner);
    replies_.emplace(id, std::move(reply));
  });
}

void Client::release(const ClaimPtr& claim, TimePoint deadline, Reply reply) {
  world_.trace(
      [&] { return "client " + std::to_string(number_) + " releases " + describe(*claim); });
  tell([&](Actions& actions) {
    replies_.emplace(calls_.release(claim, {.deadline = deadline}, times(), actions),
                     std::move(reply));
  });
}

void Client::heard(std::uint64_t letter, std::size_t node, Vote vote) {
  tell([&](Actions& actions) { calls_.heard(letter, node, std::move(vote), times(), actions); });
}

void Client::listen_all(const Actions::Listen& listen) {
  if (listening_.size() > 16) listening_.erase(listening_.begin());
  listening_.push_back(listen);
  for (std::size_t node = 0; node < wires_.size(); ++node) {
    if (!wires_[node]->listen()) continue;
    tell([&](Actions& actions) { calls_.listens(listen, node, false, actions); });
  }
}

void Client::hears(std::size_t node) {
  const auto listening = listening_;
  for (const auto& each : listening)
    tell([&](Actions& actions) { calls_.listens(each, node, true, actions); });
}

void Client::turn(const interlock::Owner& owner, std::size_t node) {
  tell([&](Actions& actions) { calls_.turn(owner, node, actions); });
}

void Client::wake(const interlock::Owner& owner) {
  if (const auto it = listeners_.find(owner); it != listeners_.end()) {
    const auto woken = it->second;
    return woken();
  }
  early_wakes_[next_early_wake_++ % early_wakes_.size()] = owner;
}

bool Client::listen(const interlock::Owner& owner, Woken woken) {
  listeners_[owner] = std::move(woken);
  const auto early = std::find(early_wakes_.begin(), early_wakes_.end(), owner);
  if (early == early_wakes_.end()) return false;
  *early = {};
  return true;
}

// As core/forget.hpp does.
void Client::forget(const ClaimPtr& claim) { forget(claim, call_deadline() + claim->ttl, 1); }

void Client::forget(const ClaimPtr& claim, TimePoint until, int tries) {
  if (now() >= until) return;
  release(claim, call_deadline(), [this, claim, until, tries](const Answer& answer) {
    if (answer.verdict != interlock::Verdict::unknown) return;
    at(now() + interlock::Retry::standard().delay(tries),
       [this, claim, until, tries] { forget(claim, until, tries + 1); });
  });
}

}  // namespace simulation
