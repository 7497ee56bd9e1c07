#include "backends/redis/redlock_mender.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

namespace {

using std::chrono::milliseconds;

constexpr Duration kPatience = std::chrono::seconds(1);
constexpr Duration kPause = std::chrono::seconds(1);

// Clocks run differently, and a hold may end a little later than its node says.
Duration with_margin(Duration time) {
  return time == Duration::zero() ? time : time + time / 50 + milliseconds(10);
}

}  // namespace

void RedlockMender::mend(std::function<void()> then) {
  bool begin = false;
  {
    const std::lock_guard lock(mutex_);
    begin = !running_ && BootClock::now() >= not_before_;
    if (begin || running_) then_.push_back(std::exchange(then, nullptr));
    running_ = running_ || begin;
  }
  if (begin) return look([this](const States& states) { looked(states); });
  if (then) then();
}

Words RedlockMender::words(std::size_t node,
                           std::initializer_list<std::string_view> arguments) const {
  Words words;
  words.add("1");
  words.add(group_.node(node).style().fence);
  for (const auto argument : arguments) words.add(argument);
  return words;
}

void RedlockMender::ask(const Nodes& nodes, const std::function<Words(std::size_t)>& words,
                        Then then) {
  struct Answers {
    std::mutex mutex;
    States states;
    std::size_t left;
  };
  const auto answers = std::make_shared<Answers>();
  answers->states.resize(group_.size());
  answers->left = nodes.size();
  const Call how{.deadline = BootClock::now() + kPatience, .caller_waits = false};
  group_.ask(nodes, RedlockScripts::all().mend, words, how, nullptr,
             [answers, then = std::move(then)](std::size_t node, const Outcome& outcome) {
               const auto said =
                   outcome.reply ? elements_of(*outcome.reply) : std::span<redisReply* const>{};
               {
                 const std::lock_guard lock(answers->mutex);
                 if (said.size() == 6) {
                   State state{.ready = number_of(*said[0]) == 1,
                               .count = static_cast<std::uint64_t>(number_of(*said[1])),
                               .holds = milliseconds(number_of(*said[2])),
                               .clock = static_cast<std::uint64_t>(number_of(*said[4])),
                               .born = std::string(text_of(*said[5]))};
                   if (const auto wait = number_of(*said[3]); wait >= 0)
                     state.wait = milliseconds(wait);
                   answers->states[node] = std::move(state);
                 }
                 if (--answers->left > 0) return;
               }
               then(answers->states);
             });
}

void RedlockMender::look(Then then) {
  ask(
      group_.everybody(), [this](std::size_t node) { return words(node, {"look"}); },
      std::move(then));
}

namespace {

struct Sides {
  std::vector<std::size_t> ready;
  std::vector<std::size_t> fresh;
};

template <class States>
Sides sides_of(const States& states) {
  Sides sides;
  for (std::size_t node = 0; node < states.size(); ++node) {
    if (!states[node]) continue;
    (states[node]->ready ? sides.ready : sides.fresh).push_back(node);
  }
  return sides;
}

}  // namespace

void RedlockMender::looked(const States& states) {
  const auto [ready, fresh] = sides_of(states);
  const bool begins = fresh.size() >= group_.majority();
  if (fresh.empty() || (!begins && ready.size() < group_.majority())) return finish(kPause);
  Duration horizon{};
  for (const auto& state : states) {
    if (state && (begins || state->ready)) horizon = std::max(horizon, state->holds);
  }
  const auto wait = std::chrono::ceil<milliseconds>(with_margin(horizon)).count();
  ask(
      fresh,
      [this, states, wait](std::size_t node) {
        return words(node, {"wait", states[node]->born, std::to_string(wait)});
      },
      [this](const States& now) { waited(now); });
}

void RedlockMender::waited(const States& states) {
  Nodes over;
  auto pause = kPause;
  for (std::size_t node = 0; node < states.size(); ++node) {
    if (!states[node] || states[node]->ready || !states[node]->wait) continue;
    if (*states[node]->wait == Duration::zero()) {
      over.push_back(node);
    } else {
      pause = std::min(pause, *states[node]->wait);
    }
  }
  if (over.empty()) return finish(pause);
  // The counters have to be read after the wait was over.
  look([this, over](const States& now) { repair(over, now); });
}

void RedlockMender::repair(const Nodes& nodes, const States& states) {
  const auto [ready, fresh] = sides_of(states);
  const bool begins = fresh.size() >= group_.majority();
  if (!begins && ready.size() < group_.majority()) return finish(kPause);
  std::uint64_t count = 0;
  for (const auto& state : states) {
    if (!state) continue;
    count = std::max(count, state->count);
    if (begins) count = std::max(count, state->clock);
  }
  Nodes able;
  for (const auto node : nodes) {
    if (states[node] && !states[node]->ready) able.push_back(node);
  }
  if (able.empty()) return finish(Duration::zero());
  ask(
      able,
      [this, states, count](std::size_t node) {
        return words(node, {"repair", states[node]->born, std::to_string(count)});
      },
      [this](const States&) { finish(Duration::zero()); });
}

void RedlockMender::finish(Duration pause) {
  std::vector<std::function<void()>> then;
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    not_before_ = BootClock::now() + pause;
    then.swap(then_);
  }
  for (const auto& tell : then) tell();
}

}  // namespace interlock::redis
