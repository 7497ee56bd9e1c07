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
  [[nodiscard]] int next_in() const {
    if (!shown_here_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_ - BootClock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

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
      complain(who.empty() ? error.what() : claim.title() + ": " + who);
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
  int ended_by = 0;
  bool told = false;  // that the store does not answer
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
    ::poll(fds.data(), fds.size(), line.next_in());
    if (fds[3].revents != 0) events.bell().quiet();
    const auto problem = events.store_problem();
    if (std::exchange(told, !problem.empty()) != !problem.empty() && !claim.no_wait &&
        !claim.quiet && ended_by == 0) {
      line.clear();
      complain(claim.title() + (problem.empty()
                                    ? ": the store answers again"
                                    : ": the store does not answer, trying again: " + problem));
    }
    while (const auto signal = signals.next()) on_signal(*signal);
    if (guardian != nullptr && fds[2].revents != 0) {
      guardian->look();
      while (const auto signal = take_signal(guardian->board().asked)) on_signal(*signal);
      if (guardian->gone()) on_signal(SIGTERM);
    }
    if (auto attempt = result->take()) {
      line.clear();
      if (ended_by != 0) return {.lease = {}, .exit_status = by_signal(ended_by)};
      if (*attempt) return {.lease = std::move(**attempt), .exit_status = kOk};
      return {.lease = {}, .exit_status = explain(*attempt, client, claim, events)};
    }
    line.update();
  }
}

}  // namespace cli
