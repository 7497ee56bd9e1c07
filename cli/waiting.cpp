#include "waiting.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stop_token>

#include "command.hpp"
#include "interlock/attempt.hpp"
#include "interlock/duration.hpp"
#include "interlock/multi_lock.hpp"
#include "show.hpp"
#include "standard_error.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Attempt;
using interlock::BootClock;
using interlock::TimePoint;
using std::chrono::seconds;

/// Filled in by the client's thread.
struct Result {
  std::mutex mutex;
  std::optional<Attempt> attempt;
  Bell bell;

  std::optional<Attempt> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(attempt, std::nullopt);
  }
};

/// For poll(), in milliseconds.
int until(TimePoint time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - BootClock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

/// One line on the terminal that says who is in the way, renewed once in a while.
class WaitingLine {
 public:
  WaitingLine(const interlock::Client& client, const ClaimOptions& claim, const Events& events)
      : client_(client), claim_(claim), events_(events) {
    const char* term = std::getenv("TERM");
    shown_here_ =
        ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  }
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() { clear(); }

  void clear() {
    if (std::exchange(shown_, false)) write_error("\r\033[K");
  }

  /// How long poll() may sleep, in milliseconds.
  [[nodiscard]] int next_in() const { return shown_here_ ? until(next_) : -1; }

  void update() {
    if (!shown_here_ || BootClock::now() < next_) return;
    const int wide = columns(STDERR_FILENO) - 1;
    // A long name must not hide who has it.
    auto line = "waiting for " + printable(claim_.title(), wide / 3);
    try {
      const auto who = in_the_way(client_, claim_.parts(), events_.owner(), wide - width(line) - 2);
      if (!who.empty()) line += ": " + who;
    } catch (const interlock::Error&) {  // the wait ends with it, or goes on
    }
    write_error("\r\033[K" + printable(line, wide));
    shown_ = true;
    next_ = BootClock::now() + seconds(1);
  }

 private:
  const interlock::Client& client_;
  const ClaimOptions& claim_;
  const Events& events_;
  bool shown_here_ = false;
  bool shown_ = false;
  TimePoint next_ = BootClock::now() + seconds(1);
};

/// What a wait says where nobody watches it: once, after a while.
class WaitingNote {
 public:
  WaitingNote(const interlock::Client& client, const ClaimOptions& claim, const Events& events)
      : client_(client),
        claim_(claim),
        events_(events),
        wanted_(!claim.quiet && !claim.no_wait && ::isatty(STDERR_FILENO) != 1) {}

  /// How long poll() may sleep, in milliseconds.
  [[nodiscard]] int next_in() const { return wanted_ ? until(at_) : -1; }

  void update() {
    if (!wanted_ || BootClock::now() < at_) return;
    wanted_ = false;
    try {
      const auto who = in_the_way(client_, claim_.parts(), events_.owner());
      complain("still waiting for '" + claim_.title() + "'" + (who.empty() ? "" : ", " + who));
    } catch (const interlock::Error&) {  // the wait ends with it, or goes on
    }
  }

 private:
  const interlock::Client& client_;
  const ClaimOptions& claim_;
  const Events& events_;
  bool wanted_;
  TimePoint at_ = BootClock::now() + seconds(30);
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A wait for a lock under which this command already runs: it would not end before this command does.
class OwnLock {
 public:
  OwnLock(const interlock::Client& client, const ClaimOptions& claim)
      : client_(client),
        claim_(claim),
        name_(variable("INTERLOCK_RESOURCE")),
        wanted_(!claim.quiet && !claim.no_wait && asked_for()) {}

  /// How long poll() may sleep, in milliseconds.
  [[nodiscard]] int next_in() const { return wanted_ ? until(at_) : -1; }

  void update(WaitingLine& line) {
    if (!wanted_ || BootClock::now() < at_) return;
    wanted_ = false;
    try {
      if (!held()) return;
    } catch (const interlock::Error&) {  // the wait ends with it, or goes on
      return;
    }
    line.clear();
    complain(claim_.title() + ": this command already runs under the lock '" + name_ +
             "', so it waits for itself");
  }

 private:
  [[nodiscard]] bool asked_for() const {
    if (name_.empty()) return false;
    const auto parts = claim_.parts();
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
      const auto above = interlock::ancestors(part.resource);
      return part.resource == name_ || std::find(above.begin(), above.end(), name_) != above.end();
    });
  }

  /// In another store, a lock of this name has another owner.
  [[nodiscard]] bool held() const {
    const auto owner = variable("INTERLOCK_OWNER");
    const auto snapshot = client_.inspect({.resources = {name_}});
    return std::any_of(
        snapshot.resources.begin(), snapshot.resources.end(), [&](const auto& state) {
          return std::any_of(state.holders.begin(), state.holders.end(),
                             [&](const auto& entry) { return entry.owner.brief() == owner; });
        });
  }

  const interlock::Client& client_;
  const ClaimOptions& claim_;
  std::string name_;
  bool wanted_;
  TimePoint at_ =
      BootClock::now() + std::chrono::milliseconds(100);  // a free lock is granted by then
};

int sooner(int one, int other) {
  if (one < 0 || other < 0) return std::max(one, other);
  return std::min(one, other);
}

int explain(const Attempt& attempt, const interlock::Client& client, const ClaimOptions& claim,
            const Events& events) {
  const auto& error = attempt.error();
  switch (attempt.outcome()) {
    case interlock::Outcome::busy:
    case interlock::Outcome::timed_out:
    case interlock::Outcome::exhausted: {
      if (claim.quiet) return claim.busy_code;
      // Whoever was in the way may be gone by now.
      const auto who = in_the_way(client, claim.parts(), events.owner());
      const bool waited = claim.wait && attempt.outcome() == interlock::Outcome::timed_out;
      if (waited) {
        complain(claim.title() + ": gave up after " + interlock::format_duration(*claim.wait) +
                 (who.empty() ? "" : ", " + who));
      } else {
        complain(who.empty() ? error.what() : claim.title() + ": " + who);
      }
      return claim.busy_code;
    }
    default:
      throw interlock::Error(error);
  }
}

}  // namespace

Waited wait_for_lock(const interlock::Client& client, const ClaimOptions& claim,
                     const interlock::Options& options, const Events& events,
                     const Signals& signals, Guardian* guardian) {
  const auto result = std::make_shared<Result>();
  std::stop_source stop;
  auto wait = claim.how_long();
  wait.stop = stop.get_token();
  client.acquire(claim.parts(), options, wait, [result](Attempt attempt) {
    {
      const std::lock_guard lock(result->mutex);
      result->attempt.emplace(std::move(attempt));
    }
    result->bell.ring();
  });

  WaitingLine line(client, claim, events);
  WaitingNote note(client, claim, events);
  OwnLock own(client, claim);
  int ended_by = 0;
  bool told = false;  // that the store can't grant it now
  const auto on_signal = [&](int signal) {
    if (signal == SIGTSTP) {
      line.clear();
      stop_here();
    } else if (signal == SIGCHLD && guardian != nullptr) {
      guardian->wake();
    } else if (asks_to_end(signal) && ended_by == 0) {
      ended_by = signal;
      stop.request_stop();
    }
  };
  for (;;) {
    std::array<pollfd, 4> fds{
        {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
         {.fd = result->bell.fd(), .events = POLLIN, .revents = 0},
         {.fd = guardian != nullptr ? guardian->fd() : -1, .events = POLLIN, .revents = 0},
         {.fd = events.bell().fd(), .events = POLLIN, .revents = 0}}};
    ::poll(fds.data(), fds.size(), sooner(line.next_in(), sooner(note.next_in(), own.next_in())));
    if (fds[3].revents != 0) events.bell().quiet();
    const auto problem = events.store_problem();
    if (std::exchange(told, !problem.empty()) != !problem.empty() && !claim.no_wait &&
        !claim.quiet && ended_by == 0) {
      line.clear();
      complain(claim.title() + (problem.empty()
                                    ? ": the store works again"
                                    : ": the store can't grant it now, trying again: " + problem));
    }
    while (const auto signal = signals.next()) on_signal(*signal);
    if (guardian != nullptr && fds[2].revents != 0) {
      guardian->look();
      while (const auto signal = take_signal(guardian->board().asked)) on_signal(*signal);
      if (guardian->gone() && ended_by == 0) {
        line.clear();
        complain(claim.title() +
                 ": the process that guards the command was killed during the wait, so the command "
                 "is not started");
        ended_by = SIGKILL;
        stop.request_stop();
      }
    }
    if (auto attempt = result->take()) {
      line.clear();
      if (ended_by != 0) return {.lease = {}, .exit_status = by_signal(ended_by)};
      if (*attempt) return {.lease = std::move(**attempt), .exit_status = kOk};
      return {.lease = {}, .exit_status = explain(*attempt, client, claim, events)};
    }
    own.update(line);
    line.update();
    note.update();
  }
}

}  // namespace cli
