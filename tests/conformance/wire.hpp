// The wire between a client and its store, in a test's hand: calls can be failed, swallowed, held
// back, or cut off altogether.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "conformance/suite.hpp"
#include "interlock/backend.hpp"

namespace interlock::conformance {

enum class Kind { acquire, renew, release, inspect };

enum class Fate {
  pass,          ///< nothing happens to it
  fail,          ///< does not reach the store: unreachable
  swallow,       ///< is done, and the answer is lost: unreachable, in doubt
  silence,       ///< does not reach the store, and nobody answers
  mute,          ///< is done, and nobody answers
  hold,          ///< is done, and the answer waits for deliver()
  late,          ///< waits for deliver() on its way to the store
  late_swallow,  ///< the same, and then its answer is lost
};

/// What happens to the calls, and what did. Shared by a test and its client; thread-safe.
class Wire {
 public:
  /// From now on, calls of this kind meet this fate.
  void set(Kind kind, Fate fate) {
    const std::lock_guard lock(mutex_);
    fates_[kind] = fate;
    once_.erase(kind);
  }
  void set_all(Fate fate) {
    for (const auto kind : {Kind::acquire, Kind::renew, Kind::release, Kind::inspect}) {
      set(kind, fate);
    }
  }
  /// Only the next call of this kind does.
  void once(Kind kind, Fate fate) {
    const std::lock_guard lock(mutex_);
    once_[kind] = fate;
  }
  /// From now on, no wake arrives.
  void deafen() {
    const std::lock_guard lock(mutex_);
    deaf_ = true;
  }
  bool deaf() const {
    const std::lock_guard lock(mutex_);
    return deaf_;
  }
  /// How many calls of this kind there were, whatever became of them.
  int calls(Kind kind) const {
    const std::lock_guard lock(mutex_);
    const auto it = calls_.find(kind);
    return it == calls_.end() ? 0 : it->second;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    int sum = 0;
    for (const auto& [kind, count] : calls_) sum += count;
    return sum;
  }
  /// When the last call of this kind left the client.
  TimePoint last(Kind kind) const {
    const std::lock_guard lock(mutex_);
    return last_.at(kind);
  }
  std::size_t held_back() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  /// Lets what was held back arrive.
  void deliver() {
    std::vector<std::function<void()>> ready;
    {
      const std::lock_guard lock(mutex_);
      ready.swap(held_);
    }
    for (auto& answer : ready) answer();
  }

 private:
  friend class Wired;

  Fate fate(Kind kind) {
    const std::lock_guard lock(mutex_);
    ++calls_[kind];
    last_[kind] = BootClock::now();
    if (const auto it = once_.find(kind); it != once_.end()) {
      const auto fate = it->second;
      once_.erase(it);
      return fate;
    }
    return fates_[kind];
  }
  void keep(std::function<void()> answer) {
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(answer));
  }
  void drop_held() {
    const std::lock_guard lock(mutex_);
    held_.clear();
  }

  mutable std::mutex mutex_;
  std::map<Kind, Fate> fates_;
  std::map<Kind, Fate> once_;
  std::map<Kind, int> calls_;
  std::map<Kind, TimePoint> last_;
  std::vector<std::function<void()>> held_;
  bool deaf_ = false;
};

/// A store at the end of a wire.
class Wired final : public Backend {
 public:
  Wired(std::unique_ptr<Backend> inner, std::shared_ptr<Wire> wire, Duration call_timeout = 300ms)
      : inner_(std::move(inner)), wire_(std::move(wire)), traits_(inner_->traits()) {
    traits_.call_timeout = call_timeout;
  }
  ~Wired() override { wire_->drop_held(); }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  /// Before a client has it: what the store promises, as this client shall see it.
  [[nodiscard]] Traits& adjust() noexcept { return traits_; }

  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    pass(Kind::acquire, std::move(reply), [this, claim, queue, call](Reply to) {
      inner_->acquire(claim, queue, call, std::move(to));
    });
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    pass(Kind::renew, std::move(reply),
         [this, claim, call](Reply to) { inner_->renew(claim, call, std::move(to)); });
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    pass(Kind::release, std::move(reply),
         [this, claim, call](Reply to) { inner_->release(claim, call, std::move(to)); });
  }
  void inspect(const Query& query, Call call, Report report) override {
    if (wire_->fate(Kind::inspect) == Fate::pass) {
      inner_->inspect(query, call, std::move(report));
    } else {
      report({.resources = {}, .why = error(false)});
    }
  }
  void on_wake(WakeSink sink) override {
    inner_->on_wake([wire = wire_, sink = std::move(sink)](const Owner& owner) {
      if (!wire->deaf()) sink(owner);
    });
  }
  void lend(Signal& signal, TimePoint until) override { inner_->lend(signal, until); }

 private:
  [[nodiscard]] Error error(bool maybe_held) const {
    return {Errc::unreachable,
            "the wire was cut",
            {.resource = "", .node = traits_.where, .maybe_held = maybe_held}};
  }

  template <class Send>
  void pass(Kind kind, Reply reply, Send send) {
    switch (wire_->fate(kind)) {
      case Fate::pass:
        return send(std::move(reply));
      case Fate::fail:
        return reply(Answer::failed(error(false)));
      case Fate::swallow:
        return send([reply = std::move(reply), why = error(true)](const Answer&) {
          reply(Answer::failed(why));
        });
      case Fate::silence:
        return;
      case Fate::mute:
        return send([](const Answer&) {});
      case Fate::hold:
        return send([wire = wire_, reply = std::move(reply)](const Answer& answer) {
          wire->keep([reply, answer] { reply(answer); });
        });
      case Fate::late_swallow:
        return wire_->keep([send, reply, why = error(true)] {
          send([reply, why](const Answer&) { reply(Answer::failed(why)); });
        });
      case Fate::late:
        return wire_->keep([send, reply] { send(reply); });
    }
  }

  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Wire> wire_;
  Traits traits_;
};

}  // namespace interlock::conformance
