#include "backends/redis/redlock_store.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

namespace {

// Below this, the two milliseconds that are taken off for clocks would be cut to a fifth.
constexpr Duration kShortestTtl = std::chrono::milliseconds(20);

RedlockNodes nodes_of(const std::vector<RedlockGroup::Member>& members, const Traits& traits) {
  RedlockNodes nodes{.names = {}, .where = traits.where};
  for (const auto& member : members) nodes.names.push_back(member.name);
  return nodes;
}

RedlockCalls::Now now() {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
  const auto wall = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  return {.time = BootClock::now(),
          .clock = static_cast<std::uint64_t>(std::max<std::int64_t>(wall, 0))};
}

}  // namespace

class Redlock::Timer final : public core::Keeper::Task {
 public:
  explicit Timer(Redlock& store) : store_(store) {}
  void due(TimePoint) override {
    store_.tell([this](Actions& actions) {
      store_.ticks_at_ = TimePoint::max();
      store_.calls_.tick(now(), actions);
    });
  }

 private:
  Redlock& store_;
};

Redlock::Redlock(const std::string& prefix, const std::vector<RedlockGroup::Member>& members,
                 Traits traits)
    : traits_(std::move(traits)),
      calls_(nodes_of(members, traits_), traits_.call_timeout),
      timer_(std::make_shared<Timer>(*this)),
      group_(
          prefix, members,
          [this](std::size_t node, const Owner& owner) {
            tell([&](Actions& actions) { calls_.turn(owner, node, actions); });
          },
          [this](const Error& warning) { warn_(warning); }) {}

std::optional<Error> Redlock::refusal(const Claim& claim) const {
  for (const auto& part : claim.parts) {
    if (part.mode == Mode::slots) {
      return Error(Errc::unsupported, kNoSlots,
                   {.resource = part.resource, .node = traits_.where, .maybe_held = false});
    }
  }
  if (claim.ttl < kShortestTtl) {
    return Error(
        Errc::invalid_ttl, "a Redlock needs a TTL of at least 20ms",
        {.resource = claim.parts.front().resource, .node = traits_.where, .maybe_held = false});
  }
  return bad_name(claim);
}

std::optional<Error> Redlock::bad_name(const Claim& claim) const {
  try {
    for (const auto& part : claim.parts) (void)group_.names().of(part.resource);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void Redlock::acquire(const Claim& claim, bool queue, Call call, Reply reply) {
  if (auto error = refusal(claim)) return reply(Answer::failed(std::move(*error)));
  begin(std::move(reply), [&](Actions& actions) {
    return calls_.acquire(std::make_shared<const Claim>(claim), queue, call, now(), actions);
  });
}

void Redlock::renew(const Claim& claim, Call call, Reply reply) {
  if (auto error = refusal(claim)) return reply(Answer::failed(std::move(*error)));
  begin(std::move(reply), [&](Actions& actions) {
    return calls_.renew(std::make_shared<const Claim>(claim), call, now(), actions);
  });
}

void Redlock::release(const Claim& claim, Call call, Reply reply) {
  if (auto error = bad_name(claim)) return reply(Answer::failed(std::move(*error)));
  begin(std::move(reply), [&](Actions& actions) {
    return calls_.release(std::make_shared<const Claim>(claim), call, now(), actions);
  });
}

template <class Begin>
void Redlock::begin(Reply reply, Begin begin) {
  try {
    group_.keeper().start();  // before anything that it watches is under way
  } catch (Error& error) {
    return reply(Answer::failed(std::move(error)));
  }
  tell([&](Actions& actions) { replies_.emplace(begin(actions), std::move(reply)); });
}

template <class Tell>
void Redlock::tell(Tell tell) {
  Actions actions;
  std::vector<std::pair<Reply, Answer>> replies;
  {
    const std::lock_guard lock(mutex_);
    tell(actions);
    // First, as sending may fail. The timer looks again when that time has come, also if there is less to
    // wait for by then.
    if (const auto next = calls_.next_tick(); next < ticks_at_) {
      group_.keeper().schedule(timer_, next);
      ticks_at_ = next;
    }
    for (auto& each : actions.sends) send(std::move(each));
    for (auto& [call, answer] : actions.answers) {
      auto reply = replies_.extract(call);
      if (reply.empty()) continue;  // there was no memory for it, and its caller knows
      replies.emplace_back(std::move(reply.mapped()), std::move(answer));
    }
  }
  for (const auto& each : actions.listens) listen(each);
  for (auto& [reply, answer] : replies) reply(std::move(answer));
  for (const auto& owner : actions.wakes) sink_(owner);
}

void Redlock::send(Actions::Send send) {
  const auto letter = send.letter;
  const auto node = send.node;
  group_.send(
      node, std::move(send.message), {.deadline = send.deadline, .caller_waits = send.caller_waits},
      [this, letter](const std::function<void()>& again) {
        const std::lock_guard lock(mutex_);
        const bool wanted = calls_.may_send(letter);
        if (wanted) again();
        return wanted;
      },
      [this, letter, node](Vote vote) {
        tell(
            [&](Actions& actions) { calls_.heard(letter, node, std::move(vote), now(), actions); });
      });
}

void Redlock::listen(const Actions::Listen& listen) {
  const auto heard = [this, listen](std::size_t node, bool late) {
    tell([&](Actions& actions) { calls_.listens(listen, node, late, actions); });
  };
  for (std::size_t node = 0; node < group_.size(); ++node) {
    if (group_.node(node).server().listen([heard, node] { heard(node, true); })) heard(node, false);
  }
}

}  // namespace interlock::redis
