// The Redis store, wherever its keys are. README.md describes the keys.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/redis/realm.hpp"

namespace interlock::redis {

/// Everything a client has: what its realm needs, too.
struct Common {
  explicit Common(std::string prefix) : names(std::move(prefix)) {}

  KeyNames names;
  WakeSink sink = [](const Owner&) {};
  Loop loop;

  WarnSink warn_sink;
  [[nodiscard]] WarnSink warn() {
    return [this](const Error& warning) {
      if (warn_sink) warn_sink(warning);
    };
  }
  /// Hands on what a message says.
  [[nodiscard]] WakeSink wake() {
    return [this](const Owner& owner) { sink(owner); };
  }
};

class Store final : public Backend {
 public:
  Store(std::unique_ptr<Common> common, std::unique_ptr<Realm> realm, Traits traits);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() override;

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override;
  void on_wake(WakeSink sink) override { common_->sink = std::move(sink); }
  void on_warning(const WarnSink& sink) override { common_->warn_sink = sink; }
  void lend(Signal& signal, TimePoint until) override { common_->loop.lend(signal, until); }

 private:
  /// A claim, or those parts of it that lie in one slot.
  struct Piece {
    Claim claim;
    std::uint16_t slot = 0;
    bool queue = false;
    Call call;
  };
  using PiecePtr = std::shared_ptr<const Piece>;
  class Fences;
  class Sequence;
  class Round;

  [[nodiscard]] std::vector<PiecePtr> cut(const Claim& whole, bool queue, Call call) const;
  void acquire_piece(const PiecePtr& piece, Reply reply);
  [[nodiscard]] bool needs_replicas(const Claim& claim) const;
  /// Notes that this call asks, until it is over.
  std::uint64_t begin(const Owner& owner);
  void end(const Owner& owner, std::uint64_t call);
  /// Gives a piece back, unless a newer call of the same owner has begun, which would lose it: then false.
  bool release_if_latest(const PiecePtr& piece, std::uint64_t call, Reply reply);
  /// Waits for the replicas. If too few of them have the grant, gives it back; but not one that took
  /// over from a hold: that stays in doubt.
  void confirm(const PiecePtr& piece, std::uint64_t call, const Answer& answer, const Reply& reply);
  void run(const Script& script, const PiecePtr& piece, Reply reply);
  /// The same for all pieces at once. Of their answers, the first one in this order counts.
  void run_all(const Script& script, std::vector<Verdict> order, const Claim& claim, Call call,
               Reply reply);

  Traits traits_;
  std::unique_ptr<Common> common_;
  std::unique_ptr<Realm> realm_;
  std::mutex mutex_;
  /// The latest call of each owner, of those that may have to give back what they were granted.
  std::unordered_map<Owner, std::uint64_t> latest_;
  std::uint64_t calls_ = 0;
};

}  // namespace interlock::redis
