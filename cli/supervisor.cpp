#include "supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <stop_token>

#include "command.hpp"
#include "process_group.hpp"

namespace cli {

using interlock::BootClock;
using interlock::TimePoint;

Ended Supervisor::run(const std::vector<std::string>& environment) {
  // From here on the library's thread wakes us when the lease is renewed or lost.
  const std::stop_callback on_loss(lease_.lost(), [this] { events_.bell().ring(); });
  told_ = lease_.valid_until();
  guardian_.start(terminal_.for_command(), told_, lease_.ttl(), environment);
  guardian_.wake();
  for (;;) {
    std::array<pollfd, 3> fds{{{.fd = guardian_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = events_.bell().fd(), .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(overdue_at() - BootClock::now());
    // After the end of the lease there is nothing that is urgent.
    const auto least = BootClock::now() < told_ ? 10 : 100;
    ::poll(fds.data(), fds.size(),
           static_cast<int>(std::clamp<std::int64_t>(left.count(), least, 60000)));
    events_.bell().quiet();
    watch_lease();
    while (const auto signal = signals_.next()) on_signal(*signal);
    guardian_.look();
    if (const auto ended = read_board()) {
      terminal_.take_back();
      return *ended;
    }
    if (guardian_.gone()) {
      const auto ended = unguarded();
      terminal_.take_back();
      return ended;
    }
    // The guardian should have ended it long ago, but somebody may have stopped the guardian.
    if (BootClock::now() >= overdue_at()) {
      kill_group();
      ::kill(guardian_.pid(), SIGCONT);
    }
  }
}

// The lock is kept until all of the group is dead.
Ended Supervisor::unguarded() {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(guardian_.pid()), &info, WEXITED | WNOWAIT);
  group_ = guardian_.board().group;  // as it was when the guardian was dead
  GroupEnd members;
  while (group_ != 0) {
    kill_group();
    while (signals_.next()) {  // as the first process of a container, it waits for orphans then
    }
    members.look(group_);
    if (members.ended()) break;
    const bool stuck = any_out_of_reach(members.living());
    if (stuck) tell_left(lease_.lost().stop_requested() ? Left::lost : Left::kept);
    ::poll(nullptr, 0, stuck ? 100 : 2);
  }
  return {.how = Ended::How::unguarded, .value = 0, .left = told_left_};
}

void Supervisor::watch_lease() {
  if (lease_.lost().stop_requested()) {
    if (!std::exchange(told_lost_, true)) guardian_.tell_lost();
    return;
  }
  const auto until = lease_.valid_until();
  if (until == told_) return;
  told_ = until;
  guardian_.move_deadline(until);
}

void Supervisor::on_signal(int signal) {
  switch (signal) {
    case SIGCHLD:  // the guardian; its socket tells when it has ended
      guardian_.wake();
      return;
    case SIGTTIN:
    case SIGTTOU:
      return;
    case SIGCONT:
      terminal_.continued();
      break;
    default:
      break;
  }
  guardian_.forward(signal);
}

std::optional<Ended> Supervisor::read_board() {
  auto& board = guardian_.board();
  if (const auto why = board.error.load(); why != 0) {
    return Ended{.how = Ended::How::not_started, .value = why};
  }
  if (const auto group = board.group.load(); group_ != group) {
    group_ = group;
    terminal_.started(group_);
  }
  while (const auto signal = take_signal(board.refused)) tell_refused(*signal);
  if (const auto left = board.left.load(); left != Left::none) tell_left(left);
  if (board.ended) {
    // Of a Ctrl-C that the command alone has got, a script around us has to know as well.
    const int status = board.status;
    if (terminal_.lent() && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) {
      terminal_.take_back();
      ::kill(0, SIGINT);
    }
    return Ended{.how = board.for_the_lease ? Ended::How::for_the_lease : Ended::How::by_itself,
                 .value = board.status,
                 .left = board.left};
  }
  while (const auto signal = take_signal(board.asked)) guardian_.forward(*signal);
  if (const auto signal = board.stopped.exchange(0); signal != 0) {
    switch (terminal_.stopped(signal)) {
      case Terminal::Next::nothing:
        break;
      case Terminal::Next::hang_up:
        complain(title_ +
                 ": the command wants the terminal, which no shell can give to it: it gets SIGHUP");
        guardian_.forward(SIGHUP);
        break;
      case Terminal::Next::go_on:
        guardian_.forward(SIGCONT);
        break;
    }
  }
  return {};
}

void Supervisor::tell_left(Left left) {
  if (std::exchange(told_left_, left) == left) return;
  const auto living = living_members(group_);
  if (!living.empty()) complain(title_ + ": " + describe(left, living));
}

// Of a signal that the terminal or a shell sends to everybody here, the command may have got its own.
void Supervisor::tell_refused(int signal) const {
  if (!asks_to_end(signal)) return;
  const auto living = living_members(group_);
  if (any_out_of_reach(living)) {
    complain(title_ + ": signal " + std::to_string(signal) + " (" + strsignal(signal) +
             ") does not reach the command: " + cannot_end(living));
  }
}

void Supervisor::kill_group() const {
  if (group_ != 0) ::kill(-group_, SIGKILL);
}

/// Between the time at which the guardian kills and the end of the lease.
TimePoint Supervisor::overdue_at() const { return told_ - Ending::margin(lease_.ttl()) / 2; }

}  // namespace cli
