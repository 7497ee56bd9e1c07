#include "supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <stop_token>

#include "process_group.hpp"

namespace cli {

using interlock::BootClock;
using interlock::TimePoint;

Ended Supervisor::run(const std::vector<std::string>& environment) {
  // From here on the library's thread wakes us when the lease is renewed or lost.
  const std::stop_callback on_loss(lease_.lost(), [this] { events_.bell().ring(); });
  told_ = lease_.valid_until();
  guardian_.start({.kind = Order::Kind::start,
                   .foreground = terminal_.for_command(),
                   .deadline = told_,
                   .ttl = lease_.ttl()},
                  environment);
  for (;;) {
    std::array<pollfd, 3> fds{{{.fd = guardian_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = events_.bell().fd(), .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(overdue_at() - BootClock::now());
    ::poll(fds.data(), fds.size(),
           static_cast<int>(std::clamp<std::int64_t>(left.count(), 10, 60000)));
    events_.bell().quiet();
    watch_lease();
    while (const auto signal = signals_.next()) on_signal(*signal);
    while (const auto news = guardian_.next()) {
      if (const auto ended = on_news(*news)) {
        terminal_.take_back();
        return *ended;
      }
    }
    if (guardian_.gone()) {
      while (group_ != 0 && living_members(group_) > 0) {
        kill_group();
        ::poll(nullptr, 0, 2);
      }
      terminal_.take_back();
      return {.how = Ended::How::unguarded};
    }
    // The guardian should have ended it long ago, but somebody may have stopped the guardian.
    if (BootClock::now() >= overdue_at()) {
      kill_group();
      ::kill(guardian_.pid(), SIGCONT);
    }
  }
}

void Supervisor::watch_lease() {
  if (lease_.lost().stop_requested()) {
    if (!std::exchange(told_lost_, true)) guardian_.send({.kind = Order::Kind::lost});
    return;
  }
  const auto until = lease_.valid_until();
  if (until == told_) return;
  told_ = until;
  guardian_.send({.kind = Order::Kind::deadline, .deadline = until, .ttl = lease_.ttl()});
}

void Supervisor::on_signal(int signal) {
  switch (signal) {
    case SIGCHLD:  // the guardian; its socket tells
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

std::optional<Ended> Supervisor::on_news(const News& news) {
  switch (news.kind) {
    case News::Kind::started:
      group_ = news.value;
      terminal_.started(group_);
      break;
    case News::Kind::not_started:
      return Ended{.how = Ended::How::not_started, .value = news.value};
    case News::Kind::stopped:
      if (terminal_.stopped(news.value)) guardian_.forward(SIGCONT);
      break;
    case News::Kind::asked:
      guardian_.forward(news.value);
      break;
    case News::Kind::ended:
      return Ended{.how = news.for_the_lease ? Ended::How::for_the_lease : Ended::How::by_itself,
                   .value = news.value};
  }
  return {};
}

void Supervisor::kill_group() const {
  if (group_ != 0) ::kill(-group_, SIGKILL);
}

/// Between the time at which the guardian kills and the end of the lease.
TimePoint Supervisor::overdue_at() const { return told_ - Ending::margin(lease_.ttl()) / 2; }

}  // namespace cli
