// Drives one Acquisition: performs its steps and feeds it what happens.
//
// Everything that happens is put into a mailbox, from any thread, and handled by one driver at a
// time: the caller's thread if it blocks (`run`), the keeper's if it does not (`start`).
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/acquisition.hpp"
#include "core/engine.hpp"

namespace interlock::core {

class Pursuit final : public Listener,
                      public Keeper::Task,
                      public std::enable_shared_from_this<Pursuit> {
 public:
  using Done = std::function<void(Pursuit&)>;

  Pursuit(std::shared_ptr<Engine> engine, std::shared_ptr<const Template> what, Claim claim,
          const Wait& wait);

  /// Blocks until it is over.
  void run();
  /// Returns at once; calls `done` on the keeper's thread when it is over.
  void start(Done done);

  /// After an exception of `run`, or of what came after it: gives back what it may have got, unless a
  /// lease has it.
  void abandon() noexcept;
  /// From now on a lease gives the claim back. False: the process ends, and the claim has been given back.
  [[nodiscard]] bool give_to_lease() noexcept {
    auto unfinished = Fate::unfinished;
    return fate_.compare_exchange_strong(unfinished, Fate::has_lease);
  }

  // Once it is over:
  [[nodiscard]] const Acquisition& result() const noexcept { return machine_; }
  [[nodiscard]] const Claim& claim() const noexcept { return claim_; }
  [[nodiscard]] TimePoint ended() const noexcept { return ended_; }
  [[nodiscard]] Duration waited() const noexcept { return machine_.waited(ended_); }
  /// Why there is no lease, in words. Not for granted.
  [[nodiscard]] Error error() const;

  void wake(const Owner& owner) override {
    if (owner == claim_.owner) post({.kind = Mail::Kind::wake});
  }
  /// Ends it with this error, unless it is over. Any thread.
  void fail(Error why) {
    post({.kind = Mail::Kind::fail, .answer = Answer::failed(std::move(why))});
  }
  void leave(TimePoint deadline) noexcept override;
  void due(TimePoint now) override;

 private:
  struct Mail {
    enum class Kind : std::uint8_t { reply, wake, fail } kind;
    int call = 0;
    TimePoint sent{};
    Answer answer{};  ///< `why` of a failure
  };

  /// Who gives the claim back.
  enum class Fate : std::uint8_t { unfinished, has_lease, has_left };

  /// What the observer has been told.
  enum class Story : std::uint8_t { untold, asked, granted, over };

  void asked();
  void begin();
  void post(Mail mail);
  void cancel() noexcept;
  void too_late(Mail& mail);
  bool pump();
  void perform(const Acquisition::Step& step, TimePoint now);
  void finish();
  void stop_listening();
  void end_story(Event how, Duration elapsed, const Error& why);
  void tell();
  void forget();

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const Template> what_;
  const Claim claim_;  // read by any thread
  std::optional<Duration> limit_;
  std::stop_token stop_;
  Acquisition machine_;
  Signal signal_;
  bool blocking_ = false;
  Done done_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::optional<std::uint32_t> told_place_;
  bool listening_ = false;
  Story story_ = Story::untold;
  TimePoint ended_{};

  std::atomic<Fate> fate_{Fate::unfinished};
  std::atomic<int> unanswered_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::vector<Mail> mail_;
  bool over_ = false;
};

}  // namespace interlock::core
