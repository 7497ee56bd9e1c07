#include "meter.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace cli::scale {

namespace {

using interlock::Answer;
using interlock::Call;
using interlock::Claim;
using interlock::Owner;
using interlock::Reply;
using interlock::Verdict;

constexpr std::size_t kMost = 20'000;  // of one kind

class Meter final : public interlock::Backend {
 public:
  Meter(std::unique_ptr<interlock::Backend> inner, std::shared_ptr<Dial> dial)
      : inner_(std::move(inner)), dial_(std::move(dial)) {}

  [[nodiscard]] const interlock::Traits& traits() const noexcept override {
    return inner_->traits();
  }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    const bool again = dial_->again(claim.owner);
    inner_->acquire(claim, queue, call,
                    [dial = dial_, again, owner = claim.owner, from = interlock::BootClock::now(),
                     reply = std::move(reply)](Answer answer) {
                      const bool granted = answer.verdict == Verdict::granted;
                      dial->note(granted ? (again ? Step::claim : Step::take)
                                         : (again ? Step::beat : Step::join),
                                 interlock::BootClock::now() - from);
                      if (granted) dial->forget(owner);
                      reply(std::move(answer));
                    });
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    inner_->renew(claim, call, timed(Step::renew, std::move(reply)));
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    inner_->release(claim, call, timed(Step::free, std::move(reply)));
  }
  void inspect(const interlock::Query& query, Call call, interlock::Report report) override {
    inner_->inspect(query, call, std::move(report));
  }
  void on_wake(interlock::WakeSink sink) override {
    inner_->on_wake([dial = dial_, sink = std::move(sink)](const Owner& owner) {
      dial->woken();
      sink(owner);
    });
  }
  void on_warning(const interlock::WarnSink& sink) override { inner_->on_warning(sink); }
  void lend(interlock::Signal& signal, interlock::TimePoint until) override {
    inner_->lend(signal, until);
  }

 private:
  Reply timed(Step step, Reply reply) {
    return [dial = dial_, step, from = interlock::BootClock::now(),
            reply = std::move(reply)](Answer answer) {
      dial->note(step, interlock::BootClock::now() - from);
      reply(std::move(answer));
    };
  }

  std::unique_ptr<interlock::Backend> inner_;
  std::shared_ptr<Dial> dial_;
};

}  // namespace

void Dial::watch(interlock::TimePoint from, interlock::TimePoint until) {
  const std::lock_guard lock(mutex_);
  from_ = from;
  until_ = until;
}

bool Dial::counts() const {
  const auto now = interlock::BootClock::now();
  return now >= from_ && now < until_;
}

void Dial::woken() {
  const std::lock_guard lock(mutex_);
  if (counts()) ++readings_.woken;
}

void Dial::note(Step step, interlock::Duration time) {
  const std::lock_guard lock(mutex_);
  if (!counts()) return;
  ++readings_.asked;
  auto& calls = readings_.calls.at(static_cast<std::size_t>(step));
  const auto most = std::numeric_limits<std::uint32_t>::max();
  if (calls.size() < kMost)
    calls.push_back(
        static_cast<std::uint32_t>(std::clamp<interlock::Duration::rep>(time.count(), 0, most)));
}

Readings Dial::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(readings_, {});
}

bool Dial::again(const interlock::Owner& owner) {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_[owner], true);
}

void Dial::forget(const interlock::Owner& owner) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(owner);
}

std::unique_ptr<interlock::Backend> metered(std::unique_ptr<interlock::Backend> inner,
                                            std::shared_ptr<Dial> dial) {
  return std::make_unique<Meter>(std::move(inner), std::move(dial));
}

}  // namespace cli::scale
