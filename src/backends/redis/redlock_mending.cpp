#include "backends/redis/redlock_mending.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

using std::chrono::milliseconds;
using Kind = Message::Kind;

namespace {

constexpr Duration kPause = std::chrono::seconds(1);

// Clocks run differently, and a hold may end a little later than its node says.
Duration with_margin(Duration time) {
  return time == Duration::zero() ? time : time + time / 50 + milliseconds(10);
}

}  // namespace

bool RedlockMending::mend(TimePoint now, Steps& steps) {
  if (!resting()) return true;
  if (now < not_before_) return false;
  look(Stage::looking, steps);
  return true;
}

void RedlockMending::look(Stage stage, Steps& steps) {
  Nodes all;
  for (std::size_t node = 0; node < nodes_.size(); ++node) all.push_back(node);
  ask(stage, all, Kind::look, 0, steps);
}

void RedlockMending::ask(Stage stage, const Nodes& nodes, Kind kind, std::uint64_t number,
                         Steps& steps) {
  stage_ = stage;
  asked_ = 0;
  for (const auto node : nodes) {
    asked_ |= bit(node);
    Message message{.kind = kind, .number = number};
    if (states_[node]) message.born = states_[node]->born;
    steps.send(Steps::Way::ask, node, std::move(message));
  }
  states_.assign(nodes_.size(), std::nullopt);
}

void RedlockMending::heard(std::size_t node, const Vote& vote, TimePoint now, Steps& steps) {
  if (resting() || (asked_ & bit(node)) == 0) return;
  if (vote.said == Vote::Said::state) states_[node] = vote.state;
  asked_ &= ~bit(node);
  if (asked_ != 0) return;
  switch (stage_) {
    case Stage::looking:
      return looked(now, steps);
    case Stage::waiting:
      return waited(now, steps);
    case Stage::reading:
      return read(now, steps);
    case Stage::repairing:
    case Stage::resting:
      return rest(now, Duration::zero());
  }
}

RedlockMending::Sides RedlockMending::sides() const {
  Sides sides;
  for (std::size_t node = 0; node < states_.size(); ++node) {
    if (states_[node]) (states_[node]->ready ? sides.ready : sides.fresh).push_back(node);
  }
  return sides;
}

void RedlockMending::looked(TimePoint now, Steps& steps) {
  const auto [ready, fresh] = sides();
  const bool begins = fresh.size() >= nodes_.majority();
  if (fresh.empty() || (!begins && ready.size() < nodes_.majority())) return rest(now, kPause);
  Duration horizon{};
  for (const auto& state : states_) {
    if (state && (begins || state->ready)) horizon = std::max(horizon, state->holds);
  }
  const auto wait = std::chrono::ceil<milliseconds>(with_margin(horizon)).count();
  ask(Stage::waiting, fresh, Kind::wait, static_cast<std::uint64_t>(wait), steps);
}

void RedlockMending::waited(TimePoint now, Steps& steps) {
  over_.clear();
  auto pause = kPause;
  for (std::size_t node = 0; node < states_.size(); ++node) {
    if (!states_[node] || states_[node]->ready || !states_[node]->wait) continue;
    if (*states_[node]->wait == Duration::zero()) {
      over_.push_back(node);
    } else {
      pause = std::min(pause, *states_[node]->wait);
    }
  }
  if (over_.empty()) return rest(now, pause);
  look(Stage::reading, steps);
}

void RedlockMending::read(TimePoint now, Steps& steps) {
  const auto [ready, fresh] = sides();
  const bool begins = fresh.size() >= nodes_.majority();
  if (!begins && ready.size() < nodes_.majority()) return rest(now, kPause);
  std::uint64_t count = 0;
  for (const auto& state : states_) {
    if (!state) continue;
    count = std::max(count, state->count);
    if (begins) count = std::max(count, state->clock);
  }
  Nodes able;
  for (const auto node : over_) {
    if (states_[node] && !states_[node]->ready) able.push_back(node);
  }
  if (able.empty()) return rest(now, Duration::zero());
  ask(Stage::repairing, able, Kind::repair, count, steps);
}

void RedlockMending::rest(TimePoint now, Duration pause) {
  stage_ = Stage::resting;
  not_before_ = now + pause;
}

}  // namespace interlock::redis
