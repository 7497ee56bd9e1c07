#include "worker.hpp"

#include "trace.hpp"

namespace simulation {

using interlock::Outcome;

namespace {

constexpr Duration kLongTtl = 10min;

}  // namespace

void Worker::later(Duration least, Duration most, std::function<void()> what) {
  client_.at(client_.now() + random_.between(least, most), std::move(what));
}

void Worker::start() {
  later(0ms, 300ms, [this] { acquire(); });
}

void Worker::rest() {
  idle_ = true;
  has_long_ttl_ = false;
  hold_.reset();
  if (!finishing_) later(0ms, habits_.hasty ? 10ms : 400ms, [this] { acquire(); });
}

ClaimPtr Worker::make_claim() {
  static constexpr Duration kTtls[] = {300ms, 1s, 2s, 4s};
  auto claim = std::make_shared<Claim>();
  claim->owner = client_.new_owner();
  const auto both = habits_.resources > 1 && random_.one_in(8);
  const auto mode = !habits_.hasty && random_.one_in(3) ? Mode::shared : Mode::exclusive;
  const auto first = random_.below(habits_.resources);
  for (std::size_t i = 0; i < habits_.resources; ++i) {
    if (!both && i != first) continue;
    claim->parts.push_back({.resource = std::string(1, static_cast<char>('a' + i)), .mode = mode});
  }
  claim->ttl = kTtls[random_.below(4)];
  if (habits_.long_ttl && random_.one_in(4)) claim->ttl = kLongTtl;
  has_long_ttl_ = claim->ttl == kLongTtl;
  if (random_.one_in(6)) claim->priority = 1;
  interlock::Who who{.host = "simulated", .pid = 1};
  if (habits_.identities && random_.one_in(2)) who.identity = random_.one_in(3) ? "you" : "me";
  claim->who = std::make_shared<const interlock::Who>(std::move(who));
  return claim;
}

std::optional<Duration> Worker::make_limit() {
  switch (random_.below(4)) {
    case 0:
      return Duration::zero();
    case 1:
      return random_.between(20ms, 3s);
    default:
      return std::nullopt;
  }
}

void Worker::acquire() {
  if (finishing_) return;
  idle_ = false;
  const auto claim = make_claim();
  const auto limit = make_limit();
  doing_ = "acquires " + describe(*claim);
  const auto cancelled = std::make_shared<bool>(false);
  const auto pursuit = std::make_shared<Pursuit>(
      client_, claim, plan_of(client_, *claim, limit),
      [this, limit, asked_at = client_.now(), asked = client_.world().now(),
       cancelled](Pursuit& ended) { acquired(ended, limit, asked_at, asked, *cancelled); });
  if (random_.one_in(5)) {
    later(1ms, 2s, [cancelled, weak = std::weak_ptr(pursuit)] {
      const auto pursued = weak.lock();
      if (!pursued || pursued->machine().done()) return;
      *cancelled = true;
      pursued->cancel();
    });
  }
  pursuit->start();
}

void Worker::check_end(const Pursuit& pursuit, std::optional<Duration> limit, TimePoint asked_at,
                       bool cancelled) {
  const auto waited = client_.now() - asked_at;
  const auto outcome = pursuit.machine().outcome();
  auto& world = client_.world();
  if (outcome == Outcome::cancelled && !cancelled)
    world.violate("answers", doing_ + ": cancelled, and nobody did");
  if (outcome == Outcome::timed_out && limit && waited < *limit)
    world.violate("answers", doing_ + ": timed out before its limit");
  const auto most = limit && *limit > Duration::zero() ? *limit : client_.traits().call_timeout;
  if (limit && waited > most + 100ms &&
      !checks_.client_disturbed(client_.number(), world.now() - 2 * waited))
    world.violate("ends", doing_ + ": its limit was over long before");
}

void Worker::acquired(Pursuit& pursuit, std::optional<Duration> limit, TimePoint asked_at,
                      Time asked, bool cancelled) {
  check_end(pursuit, limit, asked_at, cancelled);
  client_.world().trace([&] {
    return "client " + std::to_string(client_.number()) + ": " + pursuit.claim()->owner.brief() +
           " ends as " + std::to_string(static_cast<int>(pursuit.machine().outcome())) +
           (pursuit.machine().why() ? ": " + pursuit.machine().why()->message() : "");
  });
  if (pursuit.machine().outcome() != Outcome::granted) return rest();
  doing_ = "holds " + describe(*pursuit.claim());
  hold_ = std::make_shared<Hold>(client_, checks_, pursuit, asked);
  hold_->begin();
  use();
}

void Worker::use() {
  if (finishing_) return release();
  if (habits_.hasty) return later(0ms, 15ms, [this] { release(); });
  switch (habits_.changes ? random_.below(8) : 7) {
    case 0:
      return later(1ms, 300ms, [this] {
        hold_->change(hold_->mode() == Mode::shared ? Mode::exclusive : Mode::shared,
                      random_.one_in(2) ? Duration::zero() : random_.between(20ms, 1s),
                      [this] { use(); });
      });
    case 1:
      return later(1ms, 300ms, [this] {
        if (!has_long_ttl_) hold_->extend(random_.one_in(2) ? 1s : 2s);
        use();
      });
    case 2:
      return later(0ms, 3s, [this] { release(); });
    default:
      return later(0ms, 400ms, [this] { release(); });
  }
}

void Worker::release() {
  hold_->release(!random_.one_in(3), [this] { rest(); });
}

void Worker::probe(const std::string& resource, std::function<void()> granted) {
  auto claim = std::make_shared<Claim>();
  claim->owner = client_.new_owner();
  claim->parts.push_back({.resource = resource});
  claim->ttl = 1s;
  claim->who = std::make_shared<const interlock::Who>(interlock::Who{.host = "probe", .pid = 1});
  idle_ = false;
  doing_ = "probes " + describe(*claim);
  std::make_shared<Pursuit>(
      client_, claim, plan_of(client_, *claim, std::nullopt),
      [this, granted = std::move(granted), asked = client_.world().now()](Pursuit& pursuit) {
        if (pursuit.machine().outcome() != Outcome::granted) return rest();
        granted();
        hold_ = std::make_shared<Hold>(client_, checks_, pursuit, asked);
        hold_->begin();
        release();
      })
      ->start();
}

}  // namespace simulation
