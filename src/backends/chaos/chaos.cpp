// A store around a store in which things go wrong, from a seed.
//
// What goes wrong is decided when a call comes in, by one random generator, so the same seed and
// the same order of calls give the same faults. Late answers come from a thread of its own.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "core/contain.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace {

/// Runs things later.
class Later {
 public:
  Later() : thread_([this] { run(); }) {}
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;
  ~Later() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void after(Duration delay, std::function<void()> what) {
    {
      const std::lock_guard lock(mutex_);
      todo_.emplace(std::chrono::steady_clock::now() + delay, std::move(what));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (todo_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto at = todo_.begin()->first;
      if (std::chrono::steady_clock::now() < at) {
        changed_.wait_until(lock, at);
        continue;
      }
      auto what = todo_.extract(todo_.begin());
      lock.unlock();
      // If there is no memory for it, the call or its answer is lost, as others are.
      (void)core::contain(what.mapped());
      what = {};  // let go of it before taking the lock again
      lock.lock();
    }
    // What is left is dropped, as it would be when a connection ends.
    todo_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> todo_;
  bool stop_ = false;
  std::thread thread_;
};

/// What goes wrong, and when. Shared with the wake sink: a wake that is under way while the store is
/// destroyed still asks.
class Dice {
 public:
  explicit Dice(ChaosOptions options) : options_(options), random_(options.seed) {}

  void set(const ChaosOptions& options) {
    const std::lock_guard lock(mutex_);
    if (options.seed != options_.seed) random_.seed(options.seed);
    options_ = options;
  }

  bool happens(double ChaosOptions::*chance) {
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(random_) < options_.*chance;
  }

  Duration some_delay() {
    const std::lock_guard lock(mutex_);
    return Duration(std::uniform_int_distribution<Duration::rep>(
        0,
        std::clamp<Duration>(options_.max_delay, Duration::zero(), std::chrono::hours(24)).count())(
        random_));
  }

 private:
  std::mutex mutex_;
  ChaosOptions options_;
  std::mt19937_64 random_;
};

class ChaosStore final : public Chaos {
 public:
  ChaosStore(std::unique_ptr<Backend> inner, ChaosOptions options)
      : inner_(std::move(inner)),
        dice_(std::make_shared<Dice>(options)),
        traits_(inner_->traits()) {
    traits_.where = "chaos around " + traits_.where;
  }

  void set(const ChaosOptions& options) override { dice_->set(options); }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }

  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    play(call, std::move(reply), [this, claim, queue](Call how, Reply to) {
      inner_->acquire(claim, queue, how, std::move(to));
    });
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    play(call, std::move(reply),
         [this, claim](Call how, Reply to) { inner_->renew(claim, how, std::move(to)); });
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    play(call, std::move(reply),
         [this, claim](Call how, Reply to) { inner_->release(claim, how, std::move(to)); });
  }
  void inspect(const Query& query, Call call, Report report) override {
    inner_->inspect(query, call, std::move(report));
  }

  void on_wake(WakeSink sink) override {
    inner_->on_wake([dice = dice_, sink = std::move(sink)](const Owner& owner) {
      if (!dice->happens(&ChaosOptions::drop_wake)) sink(owner);
    });
  }

  void lend(Signal& signal, TimePoint until) override { inner_->lend(signal, until); }

 private:
  using Send = std::function<void(Call, Reply)>;

  Answer unreachable(const char* what, bool maybe_held) const {
    return Answer::failed({Errc::unreachable,
                           what,
                           {.resource = {}, .node = traits_.where, .maybe_held = maybe_held}});
  }

  void play(Call call, Reply reply, const Send& send) {
    const bool fails = dice_->happens(&ChaosOptions::fail);
    const bool dropped = dice_->happens(&ChaosOptions::drop_reply);
    const bool twice = dice_->happens(&ChaosOptions::duplicate);
    const bool late = dice_->happens(&ChaosOptions::delay);
    if (late) {
      // Half of the delay is on the way to the store, half on the way back.
      later_.after(dice_->some_delay() / 2, [=, this, reply = std::move(reply)]() mutable {
        call.caller_waits = true;  // this thread has nothing else to do
        run(call, fails, dropped, twice, send, [this, reply = std::move(reply)](Answer answer) {
          later_.after(dice_->some_delay() / 2,
                       [reply, answer = std::move(answer)] { reply(answer); });
        });
      });
    } else {
      run(call, fails, dropped, twice, send, std::move(reply));
    }
  }

  void run(Call call, bool fails, bool dropped, bool twice, const Send& send, Reply reply) {
    if (fails) return reply(unreachable("the call was lost on the way", false));
    if (twice) {
      // The second copy finds what the first one did, so the first one's answer is the one to give.
      reply = [call, send, reply = std::move(reply)](const Answer& first) {
        send(call, [reply, first](const Answer&) { reply(first); });
      };
    }
    if (dropped) {
      send(call, [this, reply = std::move(reply)](const Answer&) {
        reply(unreachable("the answer was lost on the way", true));
      });
    } else {
      send(call, std::move(reply));
    }
  }

  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Dice> dice_;
  Traits traits_;
  Later later_;  // last, so that it ends first
};

}  // namespace

std::unique_ptr<Chaos> chaos(std::unique_ptr<Backend> inner, ChaosOptions options) {
  return std::make_unique<ChaosStore>(std::move(inner), options);
}

}  // namespace interlock
